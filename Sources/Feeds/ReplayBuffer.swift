import DequeModule
import Synchronization

/// The replay buffer of several feeds: recent events for clients that resume or are slow.
///
/// Bounded in bytes: the oldest records are removed first, whichever feed they belong to. The feeds that are kept only
/// for the clients of other gateways have a share of their own, so that they evict no records of other feeds. Its lock is
/// the last in the lock order, because the buffer calls no other component.
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
        /// Whether the feed is kept only for the clients of other gateways.
        var isMirror = false
        /// Nil if clients can't resume at other gateways.
        var trail: RecordTrail?

        var bytes: Int { records.reduce(0) { $0 + $1.size } }

        mutating func removeOldGaps() {
            while gaps.count > 1, gaps[1] < first { gaps.removeFirst() }
        }

        /// Removes the marks that are not needed to find the cursors of its records.
        mutating func trimTrail(_ share: inout Share) {
            guard let trail else { return }
            // The cursor of the record before the first one can also be resumed after without a gap.
            share.marks -= trail.removeMarks(before: first - 1, beyond: share.hasTooManyMarks ? 0 : RecordTrail.reach)
        }
    }

    /// A part of the feeds.
    fileprivate struct Share {
        /// Maximum size of all records, in bytes.
        let limit: Int
        /// The epochs of all records, oldest record first.
        var order: Deque<UInt64> = []
        /// The size of the records.
        var bytes = 0
        /// The number of marks in the trails.
        var marks = 0

        /// A record larger than the limit divided by this number is not kept, because it would evict too many records
        /// of other feeds.
        static let maximumRecordDivisor = 8
        /// The part of the limit that marks may use. Beyond it, marks without a record are removed.
        static let maximumMarksDivisor = 4

        var isFull: Bool { bytes + marks * RecordTrail.markSize > limit }
        var hasTooManyMarks: Bool { marks * RecordTrail.markSize > limit / Self.maximumMarksDivisor }

        mutating func remove(_ log: Log, _ epoch: UInt64) {
            guard !log.records.isEmpty else { return }
            bytes -= log.bytes
            // Otherwise these entries would evict later records of this feed too early.
            order.removeAll { $0 == epoch }
        }
    }

    fileprivate struct State {
        var logs: [UInt64: Log] = [:]
        var own: Share
        var mirrored: Share
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - limit: maximum size of all records, in bytes.
    ///   - mirrorLimit: the same for the records of feeds that are kept only for the clients of other gateways.
    init(limit: Int, mirrorLimit: Int = 0) {
        state = Mutex(State(own: Share(limit: limit), mirrored: Share(limit: mirrorLimit)))
    }

    /// Adds a record of a feed. The positions of a feed are consecutive.
    func insert(_ record: EventRecord, at cursor: FeedCursor) {
        state.withLock { state in state.insert(record, at: cursor) }
    }

    // MARK: - Other gateways

    /// Adds a feed whose clients can resume at other gateways. Call it before its first record.
    func open(_ epoch: UInt64, _ places: FeedPlaces, isMirror: Bool) {
        state.withLock { state in
            state.logs[epoch] = Log(first: 1, isMirror: isMirror, trail: RecordTrail(places.cluster.windows))
        }
    }

    /// Changes whether a feed is kept only for the clients of other gateways.
    func setMirror(_ epoch: UInt64, _ isMirror: Bool) {
        state.withLock { state in
            guard state.logs[epoch]?.isMirror == !isMirror, var log = state.logs.removeValue(forKey: epoch) else {
                return
            }
            state[log.isMirror].remove(log, epoch)
            state[log.isMirror].marks -= log.trail?.count ?? 0
            log.isMirror = isMirror
            // They count as the newest records of the share.
            state[isMirror].order += repeatElement(epoch, count: log.records.count)
            state[isMirror].bytes += log.bytes
            state[isMirror].marks += log.trail?.count ?? 0
            state.logs[epoch] = log
            state.evictSurplus(isMirror)
        }
    }

    /// Begins a section of a feed's trail; see ``RecordTrail/begin(at:)``.
    func beginSection(_ epoch: UInt64, at time: Int64?) {
        state.withLock { state in state.logs[epoch]?.trail?.begin(at: time) }
    }

    /// Adds a record of a feed whose clients can resume at other gateways.
    ///
    /// - Parameters:
    ///   - hash: the hash of the event; nil for a gap.
    ///   - make: creates the record for its cursor. Called under the buffer's lock.
    func insert(
        at cursor: FeedCursor,
        _ hash: UInt64?,
        _ places: FeedPlaces,
        _ make: (FeedCursor) -> EventRecord
    ) -> EventRecord {
        let time = places.cluster.now
        return state.withLock { state in
            var place: RecordPlace?
            if let trail = state.logs[cursor.epoch]?.trail {
                if let hash {
                    place = trail.append(hash, at: time).map { window in
                        RecordPlace(cursor, time: time, count: window.count, hash: window.hash, places)
                    }
                } else {
                    trail.appendGap(at: time)
                }
            }
            let cursor = FeedCursor(epoch: cursor.epoch, position: cursor.position, place: place)
            let record = make(cursor)
            state.insert(record, at: cursor)
            return record
        }
    }

    /// Returns the place after the last record of a feed.
    ///
    /// - Parameter cursor: the cursor of the last record.
    func place(at cursor: FeedCursor, _ places: FeedPlaces) -> RecordPlace? {
        let time = places.cluster.now
        return state.withLock { state in
            guard let log = state.logs[cursor.epoch], let trail = log.trail else { return nil }
            guard !trail.isQuiet(at: time) else { return RecordPlace(cursor, time: time, count: 0, hash: 0, places) }
            return log.records.last?.cursor?.place
        }
    }

    /// Searches a feed for the record of another gateway's cursor. Takes the lock for a part of the records at a time.
    ///
    /// - Returns: the position to resume after; nil if it is not certain.
    func position(_ epoch: UInt64, _ search: RecordTrail.Search) -> UInt64? {
        var search = search
        while true {
            let result = state.withLock { state in
                guard let trail = state.logs[epoch]?.trail else { return RecordTrail.Search.Result?.some(.nothing) }
                return trail.advance(&search)
            }
            switch result {
            case .found(let position): return position
            case .nothing: return nil
            case nil: continue
            }
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
            guard let log = state.logs[epoch] else { return }
            if let trail = log.trail { state[log.isMirror].marks -= trail.count }
            state.logs[epoch]?.isClosed = true
            state.logs[epoch]?.trail = nil
            if log.records.isEmpty { state.logs[epoch] = nil }
        }
    }
}

extension ReplayBuffer.State {
    fileprivate subscript(isMirror: Bool) -> ReplayBuffer.Share {
        get { isMirror ? mirrored : own }
        _modify {
            if isMirror { yield &mirrored } else { yield &own }
        }
    }

    fileprivate mutating func insert(_ record: EventRecord, at cursor: FeedCursor) {
        let isMirror = keep(record, at: cursor)
        evictSurplus(isMirror)
    }

    fileprivate mutating func evictSurplus(_ isMirror: Bool) {
        while self[isMirror].isFull, let epoch = self[isMirror].order.popFirst() { evict(epoch) }
    }

    /// Adds a record without evicting others. A log that is held in a variable during eviction would be copied with all
    /// its records.
    ///
    /// - Returns: the share of its feed.
    private mutating func keep(_ record: EventRecord, at cursor: FeedCursor) -> Bool {
        var log = logs.removeValue(forKey: cursor.epoch) ?? ReplayBuffer.Log(first: cursor.position)
        if record.isGap { log.gaps.append(cursor.position) }
        if log.trail != nil { self[log.isMirror].marks += 1 }
        if record.size <= self[log.isMirror].limit / ReplayBuffer.Share.maximumRecordDivisor {
            log.records.append(record)
            self[log.isMirror].order.append(cursor.epoch)
            self[log.isMirror].bytes += record.size
        } else {
            self[log.isMirror].remove(log, cursor.epoch)
            log.records = []
            log.first = cursor.position + 1
            log.removeOldGaps()
            log.trimTrail(&self[log.isMirror])
        }
        logs[cursor.epoch] = log
        return log.isMirror
    }

    private mutating func evict(_ epoch: UInt64) {
        guard var log = logs.removeValue(forKey: epoch) else { return }
        if let oldest = log.records.popFirst() {
            self[log.isMirror].bytes -= oldest.size
            log.first += 1
            log.removeOldGaps()
            log.trimTrail(&self[log.isMirror])
        }
        if !log.records.isEmpty || !log.isClosed { logs[epoch] = log }
    }
}
