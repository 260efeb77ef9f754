import Access
import Base
import Coaty
import DequeModule
import ProblemDetails

/// The queue of records, subscriptions and status changes that the turns of a feed have not applied yet, in order.
///
/// If there are too many records, or no memory for the last one, the oldest half is replaced by a gap.
struct FeedIntake: Sendable {
    /// A subscription that was added.
    struct Join: Sendable {
        let subscription: ClientSubscription
        /// The feed's position when the subscription was added.
        let arrival: UInt64
        let snapshot: Feed.Snapshot?
        /// The place of the arrival among the events of other gateways; nil if there is none.
        var place: RecordPlace?
        /// Whether it was added again, because the event of its cursor may not have been received the first time.
        var isRetry = false
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
    /// When the first entry was appended since an entry was last taken.
    private(set) var waitingSince: ContinuousClock.Instant?
    private var records = 0
    private var bytes = 0
    /// The charge of the records, and its account; nil until there was a record.
    private var charge: (Charge, account: MemoryAccount)?
    /// Subscriptions that were removed. They are applied before the entries.
    var leaves: [ClientSubscription] = []
    /// Whether the feed has ended or was closed.
    var isOver = false
    /// Whether the broker has acknowledged the subscription, and the session is online.
    var isStanding = false
    /// Whether the broker has refused the subscription.
    var isRefused = false
    /// The problem that is returned for subscriptions that are added after the end.
    var end = Problems.withdrawn
    /// Number of events that could not be read since the last gap for such events.
    var invalid = 0
    /// When the last gap for such events was appended.
    var lastInvalid: ContinuousClock.Instant?
    /// Appends the next gap for such events; nil if none is due.
    var invalidDeadline: Deadline?
    /// Nil unless the broker keeps messages for new subscriptions.
    var retained: RetainedTopics?
    /// Requests the retained messages from the broker again; nil until the upstream has begun.
    var requestRetained: (@Sendable () -> Void)?
    /// Whether a subscription needs them that was added before the upstream had begun.
    var mustRequestRetained = false
    /// The functions that cancel the upstream subscriptions.
    var onClose: [@Sendable () -> Void] = []

    mutating func advance() { position += 1 }

    mutating func append(_ entry: Entry) {
        if case .record(let record, _) = entry {
            records += 1
            bytes += record.size
        }
        entries.append(entry)
        if waitingSince == nil { waitingSince = .now }
    }

    /// Whether the last entry is a gap that is not applied yet.
    var endsWithGap: Bool {
        if case .record(let record, _)? = entries.last, record.isGap, case .gap = record.content { true } else { false }
    }

    private mutating func popFirst() -> Entry? {
        guard let entry = entries.popFirst() else { return nil }
        if case .record(let record, _) = entry {
            records -= 1
            bytes -= record.size
            _ = charge?.0.resize(to: bytes)
        }
        return entry
    }

    /// Removes the subscriptions that have left, and the next entry.
    ///
    /// - Parameter withEntry: whether an entry can be applied now.
    /// - Returns: also the time since which an entry has been queued, if it was not returned before.
    mutating func next(
        withEntry: Bool
    ) -> (leaves: [ClientSubscription], entry: Entry?, waitingSince: ContinuousClock.Instant?) {
        defer { leaves = [] }
        guard withEntry, let entry = popFirst() else { return (leaves, nil, nil) }
        defer { waitingSince = nil }
        return (leaves, entry, waitingSince)
    }

    mutating func removeAll() {
        (entries, records, bytes, charge) = ([], 0, 0, nil)
        (retained, requestRetained, invalidDeadline) = (nil, nil, nil)
    }

    var isEmpty: Bool { entries.isEmpty && leaves.isEmpty }

    /// Charges the records. While there are too many, or no memory for them, replaces the oldest half by a gap.
    ///
    /// - Parameter memory: the memory of the intake, the same in each call.
    /// - Returns: whether records were replaced.
    mutating func trim(_ memory: BacklogMemory) -> Bool {
        var isTrimmed = false
        while records > memory.maximumEvents || !isCharged(memory) {
            // If there are only a gap and one event, both: otherwise a gap would replace the gap.
            replaceOldest(records == 2 && events < 2 ? 2 : (records + 1) / 2)
            isTrimmed = true
        }
        return isTrimmed
    }

    /// Charges the records.
    ///
    /// - Returns: false if there is no memory. A single event may exceed the limit, as long as there is any memory;
    ///   gaps always have memory.
    private mutating func isCharged(_ memory: BacklogMemory) -> Bool {
        let (current, account) = charge ?? { ($0.chargeAnyway(0), $0) }(memory.account())
        charge = (current, account)
        if current.resize(to: bytes) { return true }
        let events = events
        guard events == 0 || events == 1 && memory.hasRoom else { return false }
        // At most the share, so that other intakes still have memory. While the event is parsed, it is charged
        // elsewhere.
        charge = (account.chargeAnyway(min(bytes, memory.limit)), account)
        return true
    }

    /// Number of records that are events.
    private var events: Int {
        entries.count { if case .record(let record, _) = $0 { !record.isGap } else { false } }
    }

    private mutating func replaceOldest(_ number: Int) {
        var surplus = number
        let old = entries
        (entries, records, bytes) = ([], 0, 0)
        for entry in old {
            guard surplus > 0, case .record(let record, let position) = entry else {
                append(entry)
                continue
            }
            surplus -= 1
            // Subscriptions that were added before the last dropped record receive the gap.
            if surplus == 0 { append(.record(EventRecord(.gap, cursor: record.cursor), position: position)) }
        }
    }
}
