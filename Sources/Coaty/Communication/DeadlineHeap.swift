/// Handlers that are due at some time, ordered by it. A cancelled handler is removed at once.
struct DeadlineHeap {
    typealias Instant = ContinuousClock.Instant
    typealias Handler = @Sendable () -> Void

    /// Identifies an entry, also after its removal.
    struct Key {
        fileprivate let slot: Int
        fileprivate let serial: UInt64
    }

    private struct Entry {
        let time: Instant
        let key: Key
        let handler: Handler
    }

    /// A binary heap.
    private var entries: [Entry] = []
    /// The index in `entries` for each slot that is in use.
    private var indices: [Int] = []
    private var freeSlots: [Int] = []
    private var lastSerial: UInt64 = 0

    /// The time of the first handler; nil if there is none.
    var first: Instant? { entries.first?.time }
    var count: Int { entries.count }

    mutating func insert(_ handler: @escaping Handler, at time: Instant) -> Key {
        lastSerial += 1
        let slot = freeSlots.popLast() ?? indices.count
        if slot == indices.count { indices.append(0) }
        let key = Key(slot: slot, serial: lastSerial)
        entries.append(Entry(time: time, key: key, handler: handler))
        rise(entries.count - 1)
        return key
    }

    /// Removes an entry.
    ///
    /// - Returns: its handler; nil if it is no longer there.
    mutating func remove(_ key: Key) -> Handler? {
        guard key.slot < indices.count, indices[key.slot] < entries.count,
            entries[indices[key.slot]].key.serial == key.serial
        else { return nil }
        return remove(at: indices[key.slot])
    }

    /// Removes the first entry if it is due.
    mutating func popDue(at now: Instant) -> Handler? {
        guard let first, first <= now else { return nil }
        return remove(at: 0)
    }

    private mutating func remove(at index: Int) -> Handler {
        let removed = entries[index]
        let last = entries.removeLast()
        if entries.isEmpty {
            // Releases the memory of a burst.
            (entries, indices, freeSlots) = ([], [], [])
        } else {
            freeSlots.append(removed.key.slot)
            if index < entries.count {
                entries[index] = last
                indices[last.key.slot] = index
                sink(index)
                rise(indices[last.key.slot])
            }
        }
        return removed.handler
    }

    /// Moves an entry up to its place.
    private mutating func rise(_ index: Int) {
        let entry = entries[index]
        var index = index
        while index > 0 {
            let parent = (index - 1) / 2
            guard entry.time < entries[parent].time else { break }
            put(entries[parent], at: index)
            index = parent
        }
        put(entry, at: index)
    }

    /// Moves an entry down to its place.
    private mutating func sink(_ index: Int) {
        let entry = entries[index]
        var index = index
        while case var child = 2 * index + 1, child < entries.count {
            if child + 1 < entries.count, entries[child + 1].time < entries[child].time { child += 1 }
            guard entries[child].time < entry.time else { break }
            put(entries[child], at: index)
            index = child
        }
        put(entry, at: index)
    }

    private mutating func put(_ entry: Entry, at index: Int) {
        entries[index] = entry
        indices[entry.key.slot] = index
    }
}
