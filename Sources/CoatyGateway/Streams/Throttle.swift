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
    private var held: [TopicLevel: LaneItem?] = [:]
    /// When the intervals end, in order: they are all as long. With each the cursor behind which all is that was held back
    /// in it.
    private var due: Deque<(time: Instant, key: TopicLevel, cursor: StreamCursor?)> = []
    /// The bytes of what is held back; 0 where there is nothing.
    private var bytes = 0
    /// The cursor of what was taken last.
    private var last: StreamCursor?

    init(interval: Duration) {
        self.interval = interval
    }

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

    /// Takes out what was kept, and whose interval is over.
    mutating func release(at now: Instant) -> [LaneItem] {
        var released: [LaneItem] = []
        let earliest = due.first?.cursor
        while let (time, key, _) = due.first, time <= now {
            due.removeFirst()
            if let item = held.removeValue(forKey: key) ?? nil {
                bytes -= item.size
                released.append(item.resumable(behind: earliest))
                begin(key, now)
            }
        }
        if bytes == 0, let item = released.popLast() { released.append(item.resumable(behind: last)) }
        return released
    }

    /// Takes out all that was kept.
    mutating func releaseAll() -> [LaneItem] {
        defer { (held, due, bytes) = ([:], [], 0) }
        return due.compactMap { held[$0.key] ?? nil }
    }

    private func passing(_ item: LaneItem) -> LaneItem {
        bytes == 0 ? item : item.resumable(behind: due.first?.cursor)
    }

    private mutating func begin(_ key: TopicLevel, _ now: Instant) {
        held[key] = .some(nil)
        due.append((now + interval, key, last))
    }
}
