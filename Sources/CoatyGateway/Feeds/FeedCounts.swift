import Logging
import Synchronization

/// The memory for the events that feeds have not delivered yet, and what feeds leave out for lack of it.
final class FeedCounts: Sendable {
    /// Bytes that a feed gets even if others hold much, as long as the reserve lasts.
    private static let guaranteedBytes = 64 << 10

    private let logger: Logger
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

    func noteBacklog() {
        let count = backlogs.add(1, ordering: .relaxed).newValue
        // 1, 2, 4, …: the broker's thread must not be held up by a log.
        guard count.nonzeroBitCount == 1 else { return }
        logger.warning(
            "events were left out, because subscriptions take more work than there are workers for",
            metadata: ["times": "\(count)"]
        )
    }
}
