import DequeModule

/// A dictionary of at most `capacity` entries, each of which expires after the same time. A further entry replaces the
/// oldest.
struct ExpiringTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Entry: Sendable {
        var value: Value
        let expires: Instant
        /// Unique in the table.
        fileprivate let number: UInt64
    }

    private let lifetime: Duration
    private let capacity: Int
    private var entries: [Key: Entry] = [:]
    /// The keys in the order of insertion. May contain keys of entries that were removed or replaced; `number`
    /// identifies the current entry.
    private var order: Deque<(key: Key, number: UInt64)> = []
    private var lastNumber: UInt64 = 0

    init(lifetime: Duration, capacity: Int) {
        self.lifetime = lifetime
        self.capacity = capacity
    }

    /// Number of entries, including expired ones that were not replaced yet.
    var count: Int { entries.count }

    /// Returns an entry unless it has expired.
    func entry(_ key: Key, at now: Instant) -> Entry? {
        guard let entry = entries[key], entry.expires > now else { return nil }
        return entry
    }

    /// Changes the value of an entry, which keeps its expiry time.
    mutating func update(_ key: Key, _ value: Value) {
        entries[key]?.value = value
    }

    /// Inserts or replaces an entry, whose lifetime begins now.
    mutating func insert(_ key: Key, _ value: Value, at now: Instant) {
        entries[key] = nil
        removeExpired(at: now)
        while entries.count >= capacity, let oldest = order.popFirst() { remove(oldest) }
        lastNumber += 1
        entries[key] = Entry(value: value, expires: now + lifetime, number: lastNumber)
        order.append((key, lastNumber))
        // Otherwise entries that are inserted repeatedly would leave their old places behind.
        if order.count > 2 * capacity { order.removeAll { entries[$0.key]?.number != $0.number } }
    }

    private mutating func removeExpired(at now: Instant) {
        while let oldest = order.first {
            if let entry = entries[oldest.key], entry.number == oldest.number, entry.expires > now { return }
            order.removeFirst()
            remove(oldest)
        }
    }

    private mutating func remove(_ place: (key: Key, number: UInt64)) {
        if entries[place.key]?.number == place.number { entries[place.key] = nil }
    }
}
