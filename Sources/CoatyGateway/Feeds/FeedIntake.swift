import Coaty
import DequeModule
import HTTPServer

/// The records, subscriptions and status changes that the turns of a feed have not applied yet, in order.
struct FeedIntake: Sendable {
    /// Maximum number of records, and of their bytes. Beyond that, the oldest half is replaced by a gap. A single record may be
    /// larger.
    static let maximumBacklog = 4096
    static let maximumBacklogBytes = 16 << 20

    /// A subscription that was added.
    struct Join: Sendable {
        let subscription: ClientSubscription
        /// The feed's position when the subscription was added.
        let arrival: UInt64
        let snapshot: Feed.Snapshot?
    }

    enum Entry: Sendable {
        case record(EventRecord, position: UInt64)
        case join(Join)
        case status(SubscriptionStatus)
        case end(Problem)
    }

    /// The position of the last record.
    private(set) var position: UInt64 = 0
    private var entries: Deque<Entry> = []
    private var records = 0
    private var bytes = 0
    /// Subscriptions that were removed. They are applied before the entries.
    var leaves: [ClientSubscription] = []
    /// Whether the feed has ended or was closed.
    var isOver = false
    /// Whether the broker has refused the subscription.
    var isRefused = false
    /// The problem for subscriptions that are added after the end.
    var end = Problems.withdrawn
    /// Cancel the upstream subscriptions.
    var onClose: [@Sendable () -> Void] = []

    mutating func advance() { position += 1 }

    mutating func append(_ entry: Entry) {
        if case .record(let record, _) = entry {
            records += 1
            bytes += record.size
        }
        entries.append(entry)
    }

    /// Whether the last entry is a gap that is not applied yet.
    var endsWithGap: Bool {
        if case .record(let record, _)? = entries.last { record.isGap } else { false }
    }

    private mutating func popFirst() -> Entry? {
        guard let entry = entries.popFirst() else { return nil }
        if case .record(let record, _) = entry {
            records -= 1
            bytes -= record.size
        }
        return entry
    }

    /// Removes the subscriptions that have left, and the next entry.
    ///
    /// - Parameter withEntry: whether an entry can be applied now.
    mutating func next(withEntry: Bool) -> (leaves: [ClientSubscription], entry: Entry?) {
        defer { leaves = [] }
        return (leaves, withEntry ? popFirst() : nil)
    }

    mutating func removeAll() { (entries, records, bytes) = ([], 0, 0) }

    var isEmpty: Bool { entries.isEmpty && leaves.isEmpty }

    /// Replaces the oldest half of the records by a gap if there are too many.
    ///
    /// - Parameter gap: returns the record of the gap with the position of the last record that it replaces.
    /// - Returns: whether there were too many.
    mutating func trim(_ gap: (UInt64) -> EventRecord) -> Bool {
        guard records > 1, records > Self.maximumBacklog || bytes > Self.maximumBacklogBytes else { return false }
        var surplus = (records + 1) / 2
        let old = entries
        removeAll()
        for entry in old {
            guard surplus > 0, case .record(_, let position) = entry else {
                append(entry)
                continue
            }
            surplus -= 1
            // What was added before the last of them misses it.
            if surplus == 0 { append(.record(gap(position), position: position)) }
        }
        return true
    }
}
