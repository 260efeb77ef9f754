import Base
import DequeModule

/// Rate limiter that passes at most one event of an object per interval. It holds back the last of the events that
/// arrive in an interval, and releases it when the interval is over.
///
/// An event that passes while other events are held back gets an earlier cursor than its own, so that a client that
/// resumes after it also receives them.
struct Throttle: Sendable {
    typealias Instant = ContinuousClock.Instant

    let interval: Duration
    /// Maximum number of throttled objects; events of further objects pass immediately.
    private let maximumObjects: Int
    /// Maximum number of bytes of held events; further events pass immediately.
    private let maximumBytes: Int
    /// Events held back, by key. There is an entry for each object with a running interval; it is nil if no event has
    /// arrived since the interval began.
    private var held: [KeyedDigest: QueuedItem?] = [:]
    /// Ends of the running intervals, in order, as all intervals have the same length. All events held back in an
    /// interval come after its cursor.
    private var due: Deque<(time: Instant, key: KeyedDigest, cursor: FeedCursor?)> = []
    /// Bytes of held events.
    private var bytes = 0
    /// Cursor of the last item taken.
    private var last: FeedCursor?
    /// The charge of the running intervals, taken for several together; nil if there are none.
    private var charge: Charge?

    init(
        interval: Duration,
        maximumObjects: Int = Limits().throttledObjects,
        maximumBytes: Int = Limits().queuedBytes
    ) {
        self.interval = interval
        self.maximumObjects = maximumObjects
        self.maximumBytes = maximumBytes
    }

    /// Approximate memory of one running interval, in bytes.
    private static let intervalBytes = 200
    /// Number of intervals that are charged together.
    private static let chargedIntervals = 64

    /// Approximate memory of the throttle, in bytes.
    var footprint: Int { bytes + due.count * Self.intervalBytes }

    /// Time at which the next interval ends and ``release(at:)`` must be called; nil if no interval is running.
    var next: Instant? { due.first?.time }

    /// Passes an item or holds it back.
    ///
    /// - Parameter memory: the account that is charged for the intervals. If it has no memory for another interval,
    ///   events of further objects pass immediately. The items are already charged.
    /// - Returns: the item to deliver now; nil if there is none.
    mutating func take(_ item: QueuedItem, at now: Instant, charging memory: MemoryAccount) -> QueuedItem? {
        last = item.cursor ?? last
        guard let key = item.key else { return passing(item) }
        guard let earlier = held[key] else {
            if held.count < maximumObjects, chargeInterval(to: memory) { begin(key, now) }
            return passing(item)
        }
        let merged = earlier.map { item.replacing($0) } ?? item
        let growth = (merged?.size ?? 0) - (earlier?.size ?? 0)
        guard bytes + growth <= maximumBytes else {
            bytes -= earlier?.size ?? 0
            held[key] = .some(nil)
            return merged.map(passing)
        }
        bytes += growth
        held[key] = .some(merged)
        return nil
    }

    /// Removes and returns one held item whose interval is over; nil if there is none.
    mutating func release(at now: Instant) -> QueuedItem? {
        while let (time, key, cursor) = due.first, time <= now {
            due.removeFirst()
            guard let item = held.removeValue(forKey: key) ?? nil else { continue }
            bytes -= item.size
            begin(key, now)
            return item.resumable(behind: bytes == 0 ? last : cursor)
        }
        if due.isEmpty { charge = nil }
        return nil
    }

    /// Removes and returns all held items.
    mutating func releaseAll() -> [QueuedItem] {
        defer { (held, due, bytes, charge) = ([:], [], 0, nil) }
        let earliest = due.first?.cursor
        var items = due.compactMap { held[$0.key] ?? nil }.map { $0.resumable(behind: earliest) }
        if let item = items.popLast() { items.append(item.resumable(behind: last)) }
        return items
    }

    private func passing(_ item: QueuedItem) -> QueuedItem {
        bytes == 0 ? item : item.resumable(behind: due.first?.cursor)
    }

    /// Charges one more interval.
    ///
    /// - Returns: false if there is no memory for it.
    private mutating func chargeInterval(to memory: MemoryAccount) -> Bool {
        let charged = charge?.bytes ?? 0
        guard (due.count + 1) * Self.intervalBytes > charged else { return true }
        let bytes = (due.count + Self.chargedIntervals) * Self.intervalBytes
        if let charge { return charge.resize(to: bytes) }
        charge = memory.charge(bytes)
        return charge != nil
    }

    private mutating func begin(_ key: KeyedDigest, _ now: Instant) {
        held[key] = .some(nil)
        due.append((now + interval, key, last))
    }
}
