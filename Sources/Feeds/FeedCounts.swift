import Base
import Logging
package import Measurement
import Synchronization

/// The memory for the events that feeds have not delivered yet, and counts of the events that feeds drop.
package final class FeedCounts: Sendable {
    /// The way in which a subscription resumes.
    package enum Replay: Int, CaseIterable {
        /// With all events after its cursor.
        case complete
        /// With all events after the cursor of another gateway.
        case peer
        /// With a gap, because the oldest events after its cursor are no longer stored.
        case gap
        /// With a gap, because the cursor is from another feed, or from another run of the gateway.
        case unknown
    }

    /// Why all subscriptions of a feed get a gap.
    package enum Gap: Int, CaseIterable {
        /// The session with the broker was lost.
        case offline
        /// The broker may have dropped events, or an event was too large.
        case missed
        /// Events could not be read.
        case invalid
    }

    private let logger: Logger
    private let gaps = InlineArray<3, Atomic<Int>> { _ in Atomic(0) }
    private let replays = InlineArray<4, Atomic<Int>> { _ in Atomic(0) }
    /// The time that events are queued until a turn applies them.
    package let waits = DurationHistogram()
    private let backlogs = Atomic(0)
    private let slowLanes = Atomic(0)
    private let slowLaneOverflows = Atomic(0)
    private let memory: MemoryAccount
    /// The memory for the queued events of one feed.
    let backlogMemory: BacklogMemory
    /// The memory for the last events of one feed.
    let latestMemory: BacklogMemory

    /// The part of the memory for the last events of all feeds, and the part of that for one feed.
    private static let (latestPart, latestFeedPart) = (8, 4)

    /// - Parameters:
    ///   - memory: the bytes for all feeds.
    ///   - maximumEvents: the maximum number of queued events in one intake.
    init(memory: Int, maximumEvents: Int, logger: Logger) {
        self.logger = logger
        self.memory = MemoryAccount(Quota(total: memory, perClient: memory, guaranteed: 0, reserve: memory / 10))
        backlogMemory = BacklogMemory(
            self.memory,
            limit: memory / 2,
            guaranteed: 64 << 10,
            maximumEvents: maximumEvents
        )
        let latest = memory / Self.latestPart
        latestMemory = BacklogMemory(
            MemoryAccount(within: self.memory, limit: latest),
            limit: latest / Self.latestFeedPart,
            maximumEvents: LatestEvents.maximumEvents
        )
    }

    /// The bytes of all events that have not been delivered yet.
    package var usedMemory: Int { memory.used }

    /// Returns the memory for the events that are queued for a single client. A quarter of a feed's memory: each client
    /// is charged for them in full, although several clients may have the same events queued.
    func backlogMemory(of client: MemoryAccount) -> BacklogMemory {
        BacklogMemory(client, limit: backlogMemory.limit / 4, maximumEvents: backlogMemory.maximumEvents)
    }

    /// Number of times that older events of a feed were replaced by a gap for a single client, because the client
    /// exceeded its share of work.
    package var droppedForClients: Int { slowLaneOverflows.load(ordering: .relaxed) }

    /// Number of times that older events of a feed were replaced by a gap, because the workers did not keep up.
    package var droppedBacklogs: Int { backlogs.load(ordering: .relaxed) }

    package func replays(_ outcome: Replay) -> Int { replays[outcome.rawValue].load(ordering: .relaxed) }

    package func gaps(_ reason: Gap) -> Int { gaps[reason.rawValue].load(ordering: .relaxed) }

    func note(_ reason: Gap) { gaps[reason.rawValue].add(1, ordering: .relaxed) }

    /// Records how long an entry was queued.
    func noteWait(since begin: ContinuousClock.Instant) { waits.record(.now - begin) }

    func note(_ outcome: Replay) { replays[outcome.rawValue].add(1, ordering: .relaxed) }

    /// The number of current slow lanes.
    package var currentSlowLanes: Int { slowLanes.load(ordering: .relaxed) }

    func countSlowLane(_ change: Int) { slowLanes.add(change, ordering: .relaxed) }

    func noteSlowLaneOverflow() {
        slowLaneOverflows.add(1, ordering: .relaxed)
        logger.notice("events were dropped for a client, because its subscriptions take more work than its share")
    }

    /// - Parameter waitingSince: when a worker last took an event of the feed. If that was recently, the workers are
    ///   too slow; if it was long ago, they worked for other feeds.
    func noteBacklog(waitingSince: ContinuousClock.Instant?) {
        backlogs.add(1, ordering: .relaxed)
        let milliseconds = waitingSince.map { ($0.duration(to: .now)) / .milliseconds(1) } ?? 0
        logger.warning(
            "events were dropped, because the workers can't keep up with the subscriptions",
            metadata: ["idle-ms": .stringConvertible(Int(milliseconds))]
        )
    }
}

/// The memory for the queued records of one intake.
struct BacklogMemory: Sendable {
    private let all: MemoryAccount
    /// Maximum bytes.
    let limit: Int
    private let guaranteed: Int
    /// Maximum number of records.
    let maximumEvents: Int

    /// - Parameters:
    ///   - all: the account that is charged.
    ///   - guaranteed: the bytes that are available even if the rest is used up, as long as the reserve lasts.
    init(_ all: MemoryAccount, limit: Int, guaranteed: Int = 0, maximumEvents: Int) {
        (self.all, self.limit, self.guaranteed, self.maximumEvents) = (all, limit, guaranteed, maximumEvents)
    }

    /// Creates the account of an intake.
    func account() -> MemoryAccount { MemoryAccount(within: all, limit: limit, guaranteed: guaranteed) }

    /// Whether the charged account has memory left.
    var hasRoom: Bool { all.hasRoom }
}
