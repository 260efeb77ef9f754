import HTTPServer
import Logging
import Synchronization

/// The memory for the events that feeds have not delivered yet, and what feeds leave out for lack of it.
final class FeedCounts: Sendable {
    /// Bytes that a feed gets even if others hold much, as long as the reserve lasts.
    private static let guaranteedBytes = 64 << 10

    /// How a subscription resumes.
    enum Replay: Int, CaseIterable {
        /// With all events behind its cursor.
        case complete
        /// With a gap, because the oldest events behind its cursor are no longer there.
        case gap
        /// With a gap, because the cursor is that of another feed, or of another run of the gateway.
        case unknown
    }

    private let logger: Logger
    private let replays = InlineArray<3, Atomic<Int>> { _ in Atomic(0) }
    /// How long events wait until a turn applies them.
    let waits = DurationHistogram()
    private let backlogs = Atomic(0)
    private let memory: MemoryAccount
    /// Maximum bytes of one lane of a feed.
    let limit: Int

    /// - Parameter memory: the bytes for all feeds.
    init(memory: Int, logger: Logger) {
        self.logger = logger
        self.memory = MemoryAccount(Quota(total: memory, perClient: memory, guaranteed: 0, reserve: memory / 10))
        limit = memory / 2
    }

    /// The bytes of all events that have not been delivered yet.
    var usedMemory: Int { memory.used }

    /// Whether not all of the memory is used.
    var hasMemory: Bool { memory.hasRoom }

    /// Creates the account of one lane of a feed.
    func account() -> MemoryAccount { MemoryAccount(within: memory, limit: limit, guaranteed: Self.guaranteedBytes) }

    /// How often older events of a feed were replaced by a gap, because the workers did not keep up.
    var droppedBacklogs: Int { backlogs.load(ordering: .relaxed) }

    func replays(_ outcome: Replay) -> Int { replays[outcome.rawValue].load(ordering: .relaxed) }

    /// Records how long an entry has waited.
    func noteWait(since begin: ContinuousClock.Instant) { waits.record(.now - begin) }

    func note(_ outcome: Replay) { replays[outcome.rawValue].add(1, ordering: .relaxed) }

    func noteBacklog() {
        backlogs.add(1, ordering: .relaxed)
        logger.warning("events were left out, because subscriptions take more work than there are workers for")
    }
}
