import Base
import DequeModule

/// The last event of each object or IO source in a feed, for subscriptions with the option `latest`.
///
/// Bounded in number and bytes: the events that are the oldest are removed first. Used only by the turns of the feed.
struct LatestEvents: Sendable {
    private struct Kept {
        let record: EventRecord
        let position: UInt64
    }

    /// Maximum number of events of a feed.
    static let maximumEvents = 1000
    /// Maximum number of earlier events that the first subscription with the option searches.
    static let maximumSearched = 4000
    /// The memory of an event besides its record, in bytes.
    private static let overhead = 96

    private let memory: BacklogMemory
    private var events: [KeyedDigest: Kept] = [:]
    /// The keys in the order of their events. May contain entries of events that were replaced.
    private var order: Deque<(key: KeyedDigest, position: UInt64)> = []
    private var bytes = 0
    private var charge: Charge?

    init(_ memory: BacklogMemory) { self.memory = memory }

    /// Keeps an event in the place of the previous one with the same key.
    mutating func keep(_ record: EventRecord, at position: UInt64) {
        guard case .event(let event) = record.content, let key = event.latestKey else { return }
        remove(key)
        let size = record.size + Self.overhead
        while events.count >= memory.maximumEvents || !takes(size) {
            guard removeOldest() else { return }
        }
        events[key] = Kept(record: record, position: position)
        bytes += size
        order.append((key, position))
        if order.count > 2 * memory.maximumEvents { order.removeAll { events[$0.key]?.position != $0.position } }
    }

    /// Returns the events up to a position, the oldest first.
    func records(upTo position: UInt64) -> [EventRecord] {
        events.values.filter { $0.position <= position }.sorted { $0.position < $1.position }.map(\.record)
    }

    private mutating func takes(_ size: Int) -> Bool {
        let current = charge ?? memory.account().chargeAnyway(0)
        charge = current
        return current.resize(to: bytes + size)
    }

    private mutating func removeOldest() -> Bool {
        while let (key, position) = order.popFirst() {
            guard events[key]?.position == position else { continue }
            remove(key)
            return true
        }
        return false
    }

    private mutating func remove(_ key: KeyedDigest) {
        if let old = events.removeValue(forKey: key) { bytes -= old.record.size + Self.overhead }
    }
}

/// The events that a subscription with the option `latest` begins with. They are filtered only as the client reads.
struct LatestSnapshot: Sendable {
    private var records: Deque<EventRecord>
    /// Charges the client for the records until all of them are read.
    private var charge: Charge?

    init(_ records: [EventRecord], charge: Charge) {
        self.records = Deque(records)
        self.charge = charge
    }

    var count: Int { records.count }

    var isEmpty: Bool { records.isEmpty }

    /// Returns the next item for the client; nil after the last one, or when the turn is over. Reads at least one
    /// record.
    mutating func next(for subscription: ClientSubscription, until limit: TurnLimit) -> QueuedItem? {
        while let record = records.popFirst() {
            if records.isEmpty { charge = nil }
            if let item = subscription.item(record)?.asLatest { return item }
            if limit.isOver { return nil }
        }
        return nil
    }
}
