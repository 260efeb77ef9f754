import Coaty
import DequeModule

/// Lets at most one event of an object pass in an interval. Of those that come meanwhile the last one is kept, and passes
/// when the interval is over.
///
/// What passes while others are held back has an earlier cursor than its own: who resumes behind it gets those too.
struct Throttle: Sendable {
    /// The most objects that are kept apart; events of others pass at once.
    static let maximumObjects = 10_000
    /// The most bytes of events that are kept; what is more passes at once.
    static let maximumBytes = 4 << 20

    typealias Instant = ContinuousClock.Instant

    private let interval: Duration
    /// By key, for each object of which an event has passed within the interval: what has come since then.
    private var held: [WireName: LaneItem?] = [:]
    /// When the intervals end, in order: they are all as long. With each the cursor behind which all is that was held back
    /// in it.
    private var due: Deque<(time: Instant, key: WireName, cursor: StreamCursor?)> = []
    /// The bytes of what is held back; 0 where there is nothing.
    private var bytes = 0
    /// The cursor of what was taken last.
    private var last: StreamCursor?

    init(interval: Duration) {
        self.interval = interval
    }

    /// What one interval that is under way takes in memory, about.
    private static let intervalBytes = 200

    /// About how many bytes it takes in memory.
    var footprint: Int { bytes + due.count * Self.intervalBytes }

    /// When ``release(at:)`` has something to do next; nil while nothing is under way.
    var next: Instant? { due.first?.time }

    /// Takes an item.
    ///
    /// - Returns: what passes now.
    mutating func take(_ item: LaneItem, at now: Instant) -> LaneItem? {
        last = item.cursor ?? last
        guard let key = item.key else { return passing(item) }
        guard let earlier = held[key] else {
            if held.count < Self.maximumObjects { begin(key, now) }
            return passing(item)
        }
        let merged = earlier.map { item.replacing($0) } ?? item
        let growth = (merged?.size ?? 0) - (earlier?.size ?? 0)
        guard bytes + growth <= Self.maximumBytes else {
            bytes -= earlier?.size ?? 0
            held[key] = .some(nil)
            return merged.map(passing)
        }
        bytes += growth
        held[key] = .some(merged)
        return nil
    }

    /// Takes out one of those that were kept, and whose interval is over.
    mutating func release(at now: Instant) -> LaneItem? {
        while let (time, key, cursor) = due.first, time <= now {
            due.removeFirst()
            guard let item = held.removeValue(forKey: key) ?? nil else { continue }
            bytes -= item.size
            begin(key, now)
            return item.resumable(behind: bytes == 0 ? last : cursor)
        }
        return nil
    }

    /// Takes out all that was kept.
    mutating func releaseAll() -> [LaneItem] {
        defer { (held, due, bytes) = ([:], [], 0) }
        let earliest = due.first?.cursor
        var items = due.compactMap { held[$0.key] ?? nil }.map { $0.resumable(behind: earliest) }
        if let item = items.popLast() { items.append(item.resumable(behind: last)) }
        return items
    }

    private func passing(_ item: LaneItem) -> LaneItem {
        bytes == 0 ? item : item.resumable(behind: due.first?.cursor)
    }

    private mutating func begin(_ key: WireName, _ now: Instant) {
        held[key] = .some(nil)
        due.append((now + interval, key, last))
    }
}
