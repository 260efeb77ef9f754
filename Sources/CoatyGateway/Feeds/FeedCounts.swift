import Logging
import Synchronization

/// Counts what feeds leave out.
final class FeedCounts: Sendable {
    private let logger: Logger
    private let backlogs = Atomic(0)

    init(logger: Logger) { self.logger = logger }

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
