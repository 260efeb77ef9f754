import Base

/// The events of a feed that one client has not yet received from the replay buffer.
///
/// They are read from the buffer only as the client reads, so that few copies are kept for the client.
package struct Replay: Sendable {
    private let buffer: ReplayBuffer
    /// The cursor of the last record that was read.
    private var cursor: FeedCursor
    /// The last position to deliver.
    private(set) var end: UInt64
    /// The last position when the replay was created. Missing events up to it do not count as dropped.
    private let initialEnd: UInt64
    /// The number of events that were removed from the buffer while the client did not read.
    private var dropped = 0

    init(behind cursor: FeedCursor, upTo end: UInt64, in buffer: ReplayBuffer) {
        self.buffer = buffer
        self.cursor = cursor
        self.end = end
        initialEnd = end
    }

    /// Adds the records up to a later position.
    mutating func extend(upTo end: UInt64) { self.end = end }

    /// Returns the next item for the client; nil after the last one, or when the turn is over. Reads at least one
    /// record.
    mutating func next(for subscription: ClientSubscription, until limit: TurnLimit) -> QueuedItem? {
        while !isEmpty {
            switch buffer.next(behind: cursor, upTo: end) {
            case .record(let record):
                cursor = cursor.next
                if let item = subscription.item(record) { return item }
                if limit.isOver { return nil }
            case .forgotten(let hasGap, let last):
                let count = Int(last - cursor.position)
                // The count is unknown if a filter may have excluded removed records, or if one of them was a gap.
                let isCounted = subscription.wantsAll && !hasGap
                if isCounted, last > initialEnd { dropped += Int(last - max(cursor.position, initialEnd)) }
                cursor = FeedCursor(epoch: cursor.epoch, position: last)
                return .gap(isCounted ? count : nil, cursor)
            case .nothing:
                cursor = FeedCursor(epoch: cursor.epoch, position: end)
                return .gap(nil, cursor)
            }
        }
        return nil
    }

    /// Returns the number of events dropped since the last call.
    mutating func takeDropped() -> Int {
        defer { dropped = 0 }
        return dropped
    }

    /// The number of records left, including those that the client's filter will exclude.
    var count: Int { isEmpty ? 0 : Int(end - cursor.position) }

    /// Whether all records were read.
    var isEmpty: Bool { cursor.position >= end }
}
