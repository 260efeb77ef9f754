import DequeModule
import Synchronization

/// The replay buffer of several feeds: recent events for clients that resume or are slow.
///
/// Bounded in bytes: the oldest records are removed first, whichever feed they belong to. Its lock is the last in the
/// lock order, because the buffer calls no other component.
final class ReplayBuffer: Sendable {
    /// The result of looking for the record after a cursor.
    enum Next {
        case record(EventRecord)
        /// The records up to a position have been removed.
        case forgotten(hasGap: Bool, upTo: UInt64)
        case nothing
    }

    fileprivate struct Log {
        var records: Deque<EventRecord> = []
        /// The position of the first record, or of the next one.
        var first: UInt64
        /// Positions of the gaps among the records, in order, preceded by the last one that was removed.
        var gaps: Deque<UInt64> = []
        /// Whether the feed has ended.
        var isClosed = false

        mutating func removeOldGaps() {
            while gaps.count > 1, gaps[1] < first { gaps.removeFirst() }
        }
    }

    fileprivate struct State {
        var logs: [UInt64: Log] = [:]
        /// The epochs of all records, oldest record first.
        var order: Deque<UInt64> = []
        var bytes = 0
    }

    /// Maximum size of all records, in bytes.
    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    /// A record larger than the limit divided by this number is not kept, because it would evict too many records of
    /// other feeds.
    private static let maximumRecordDivisor = 8

    /// Adds a record of a feed. The positions of a feed are consecutive.
    func insert(_ record: EventRecord, at cursor: FeedCursor) {
        state.withLock { state in
            state.keep(record, at: cursor, mayKeep: record.size <= limit / Self.maximumRecordDivisor)
            while state.bytes > limit, let epoch = state.order.popFirst() { state.evict(epoch) }
        }
    }

    /// Returns the record after a cursor.
    ///
    /// - Parameter end: the last position to consider.
    func next(behind cursor: FeedCursor, upTo end: UInt64) -> Next {
        state.withLock { state in
            guard let log = state.logs[cursor.epoch] else { return .nothing }
            let wanted = cursor.position + 1
            guard wanted >= log.first || wanted > end else {
                let last = min(log.first - 1, end)
                return .forgotten(hasGap: log.gaps.contains { wanted...last ~= $0 }, upTo: last)
            }
            let index = Int(wanted - log.first)
            return index < log.records.count ? .record(log.records[index]) : .nothing
        }
    }

    /// Returns whether all records after a cursor are still in the buffer.
    func isComplete(behind cursor: FeedCursor) -> Bool {
        state.withLock { state in state.logs[cursor.epoch].map { cursor.position + 1 >= $0.first } ?? true }
    }

    /// Marks a feed as ended. Its records stay until they are the oldest.
    func close(_ epoch: UInt64) {
        state.withLock { state in
            state.logs[epoch]?.isClosed = true
            if state.logs[epoch]?.records.isEmpty ?? false { state.logs[epoch] = nil }
        }
    }
}

extension ReplayBuffer.State {
    /// Adds a record without evicting others. A log that is held in a variable during eviction would be copied with all
    /// its records.
    fileprivate mutating func keep(_ record: EventRecord, at cursor: FeedCursor, mayKeep: Bool) {
        var log = logs.removeValue(forKey: cursor.epoch) ?? ReplayBuffer.Log(first: cursor.position)
        if record.isGap { log.gaps.append(cursor.position) }
        if mayKeep {
            log.records.append(record)
            order.append(cursor.epoch)
            bytes += record.size
        } else {
            if !log.records.isEmpty {
                bytes -= log.records.reduce(0) { $0 + $1.size }
                log.records = []
                // Otherwise these entries would evict later records of this feed too early.
                order.removeAll { $0 == cursor.epoch }
            }
            log.first = cursor.position + 1
            log.removeOldGaps()
        }
        logs[cursor.epoch] = log
    }

    fileprivate mutating func evict(_ epoch: UInt64) {
        guard var log = logs.removeValue(forKey: epoch) else { return }
        if let oldest = log.records.popFirst() {
            bytes -= oldest.size
            log.first += 1
            log.removeOldGaps()
        }
        if !log.records.isEmpty || !log.isClosed { logs[epoch] = log }
    }
}
