import HTTPServer
import Logging
import Synchronization

/// The memory for the events that feeds have not delivered yet, and counts of the events that feeds drop.
final class FeedCounts: Sendable {
    /// How a subscription resumes.
    enum Replay: Int, CaseIterable {
        /// With all events after its cursor.
        case complete
        /// With a gap, because the oldest events after its cursor are no longer stored.
        case gap
        /// With a gap, because the cursor is from another feed, or from another run of the gateway.
        case unknown
    }

    private let logger: Logger
    private let replays = InlineArray<3, Atomic<Int>> { _ in Atomic(0) }
    /// How long events wait until a turn applies them.
    let waits = DurationHistogram()
    private let backlogs = Atomic(0)
    private let slowLanes = Atomic(0)
    private let slowLaneOverflows = Atomic(0)
    private let memory: MemoryAccount
    /// For the events of one feed.
    let backlogMemory: BacklogMemory

    /// - Parameters:
    ///   - memory: the bytes for all feeds.
    ///   - maximumEvents: the maximum number of events that wait in one intake.
    init(memory: Int, maximumEvents: Int, logger: Logger) {
        self.logger = logger
        self.memory = MemoryAccount(Quota(total: memory, perClient: memory, guaranteed: 0, reserve: memory / 10))
        backlogMemory = BacklogMemory(
            self.memory,
            limit: memory / 2,
            guaranteed: 64 << 10,
            maximumEvents: maximumEvents
        )
    }

    /// The bytes of all events that have not been delivered yet.
    var usedMemory: Int { memory.used }

    /// For the events that wait for a single client. A quarter of what a feed has: they count in full for each client, though several may
    /// wait for the same ones.
    func backlogMemory(of client: MemoryAccount) -> BacklogMemory {
        BacklogMemory(client, limit: backlogMemory.limit / 4, maximumEvents: backlogMemory.maximumEvents)
    }

    /// How often older events of a feed were replaced by a gap for a single client, because it takes more work than its share.
    var droppedForClients: Int { slowLaneOverflows.load(ordering: .relaxed) }

    /// How often older events of a feed were replaced by a gap, because the workers did not keep up.
    var droppedBacklogs: Int { backlogs.load(ordering: .relaxed) }

    func replays(_ outcome: Replay) -> Int { replays[outcome.rawValue].load(ordering: .relaxed) }

    /// Records how long an entry has waited.
    func noteWait(since begin: ContinuousClock.Instant) { waits.record(.now - begin) }

    func note(_ outcome: Replay) { replays[outcome.rawValue].add(1, ordering: .relaxed) }

    /// The slow lanes that there are.
    var currentSlowLanes: Int { slowLanes.load(ordering: .relaxed) }

    func countSlowLane(_ change: Int) { slowLanes.add(change, ordering: .relaxed) }

    func noteSlowLaneOverflow() {
        slowLaneOverflows.add(1, ordering: .relaxed)
        logger.notice("events were dropped for a client, because its subscriptions take more work than its share")
    }

    /// - Parameter waitingSince: when a worker last took an event of the feed. A short time since then means that the workers are too
    ///   slow, a long time that they worked for other feeds.
    func noteBacklog(waitingSince: ContinuousClock.Instant?) {
        backlogs.add(1, ordering: .relaxed)
        let milliseconds = waitingSince.map { ($0.duration(to: .now)) / .milliseconds(1) } ?? 0
        logger.warning(
            "events were dropped, because the workers can't keep up with the subscriptions",
            metadata: ["idle-ms": .stringConvertible(Int(milliseconds))]
        )
    }
}

/// The memory for the records that wait in one intake.
struct BacklogMemory: Sendable {
    private let all: MemoryAccount
    /// Maximum bytes.
    let limit: Int
    private let guaranteed: Int
    /// Maximum number of records.
    let maximumEvents: Int

    /// - Parameters:
    ///   - all: the account that pays.
    ///   - guaranteed: the bytes that are available even if others have used up the rest, as long as the reserve lasts.
    init(_ all: MemoryAccount, limit: Int, guaranteed: Int = 0, maximumEvents: Int) {
        (self.all, self.limit, self.guaranteed, self.maximumEvents) = (all, limit, guaranteed, maximumEvents)
    }

    /// Creates the account of an intake.
    func account() -> MemoryAccount { MemoryAccount(within: all, limit: limit, guaranteed: guaranteed) }

    /// Whether the account that pays has anything left.
    var hasRoom: Bool { all.hasRoom }
}
