import DequeModule
import Synchronization

/// What all sources have said lately, for clients that come back or are behind. Bounded in bytes: the oldest goes first.
///
/// Its lock is the last in every order: nobody is called from here.
final class ResumeMemory: Sendable {
    /// What there is behind a place.
    enum Next {
        case record(EventRecord)
        /// Records are not there any more, up to a position.
        case forgotten(hasGap: Bool, upTo: UInt64)
        case nothing
    }

    fileprivate struct Log {
        var records: Deque<EventRecord> = []
        /// The position of the first record, or of the next one.
        var first: UInt64
        /// The positions of the gaps among the records, in order, and of the last one before them.
        var gaps: Deque<UInt64> = []
        /// Whether its source is there no more.
        var isClosed = false

        mutating func forgetGaps() {
            while gaps.count > 1, gaps[1] < first { gaps.removeFirst() }
        }
    }

    fileprivate struct State {
        var logs: [UInt64: Log] = [:]
        /// The epochs of all records, in the order in which these came.
        var order: Deque<UInt64> = []
        var bytes = 0
    }

    /// The most bytes.
    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    /// A record of more than this part of the memory is not kept: it would drive out those of all other sources.
    private static let largestPart = 8

    /// Keeps a record of a source, whose positions come one after the other.
    func insert(_ record: EventRecord, at place: StreamCursor) {
        state.withLock { state in
            state.keep(record, at: place, mayKeep: record.size <= limit / Self.largestPart)
            while state.bytes > limit, let epoch = state.order.popFirst() { state.evict(epoch) }
        }
    }

    /// The record behind a place.
    ///
    /// - Parameter end: the last position that counts.
    func next(behind place: StreamCursor, upTo end: UInt64) -> Next {
        state.withLock { state in
            guard let log = state.logs[place.epoch] else { return .nothing }
            let wanted = place.position + 1
            guard wanted >= log.first || wanted > end else {
                let last = min(log.first - 1, end)
                return .forgotten(hasGap: log.gaps.contains { wanted...last ~= $0 }, upTo: last)
            }
            let index = Int(wanted - log.first)
            return index < log.records.count ? .record(log.records[index]) : .nothing
        }
    }

    /// Whether all that was said behind a place is there.
    func isComplete(behind place: StreamCursor) -> Bool {
        state.withLock { state in state.logs[place.epoch].map { place.position + 1 >= $0.first } ?? true }
    }

    /// A source says nothing more; what it has said goes in its turn.
    func close(_ epoch: UInt64) {
        state.withLock { state in
            state.logs[epoch]?.isClosed = true
            if state.logs[epoch]?.records.isEmpty ?? false { state.logs[epoch] = nil }
        }
    }
}

extension ResumeMemory.State {
    /// A function of its own: a log that is held while the oldest record is evicted would be copied with all its records.
    fileprivate mutating func keep(_ record: EventRecord, at place: StreamCursor, mayKeep: Bool) {
        var log = logs.removeValue(forKey: place.epoch) ?? ResumeMemory.Log(first: place.position)
        if case .gap = record.content { log.gaps.append(place.position) }
        if mayKeep {
            log.records.append(record)
            order.append(place.epoch)
            bytes += record.size
        } else {
            if !log.records.isEmpty {
                bytes -= log.records.reduce(0) { $0 + $1.size }
                log.records = []
                // Else those that follow would go in the turns of these.
                order.removeAll { $0 == place.epoch }
            }
            log.first = place.position + 1
            log.forgetGaps()
        }
        logs[place.epoch] = log
    }

    fileprivate mutating func evict(_ epoch: UInt64) {
        guard var log = logs.removeValue(forKey: epoch) else { return }
        if let oldest = log.records.popFirst() {
            bytes -= oldest.size
            log.first += 1
            log.forgetGaps()
        }
        if !log.records.isEmpty || !log.isClosed { logs[epoch] = log }
    }
}
