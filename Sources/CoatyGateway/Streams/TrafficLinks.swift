import Coordination
import Synchronization

/// Counts the links to the broker over which traffic is observed, each until its thread has ended.
///
/// A thread that the resolver or connect(2) holds back stays for minutes when nobody observes any more.
final class TrafficLinks: Component {
    /// The most links, those that still leave among them; then no other choice of events can be observed.
    static let maximum = StreamHub.maximumLinks + StreamHub.maximumUnusedLinks
    /// How long the stop waits for those that leave: longer than an orderly leave takes, which the binding bounds by 2 s.
    static let leaveTimeout = Duration.seconds(3)
    private static let pollInterval = Duration.milliseconds(20)

    /// The place of a link, which it has until this is released.
    final class Place: Sendable {
        private let links: TrafficLinks

        fileprivate init(_ links: TrafficLinks) { self.links = links }

        deinit { links.taken.subtract(1, ordering: .relaxed) }
    }

    private let taken = Atomic(0)

    var count: Int { taken.load(ordering: .relaxed) }

    /// To be called under a lock with the question for ``count``.
    func take() -> Place {
        taken.add(1, ordering: .relaxed)
        return Place(self)
    }

    func start() async {}

    /// Waits until the links have left: their observations end with the gateway's own link.
    func stop() async {
        let deadline = ContinuousClock.now + Self.leaveTimeout
        while count > 0, .now < deadline { try? await Task.sleep(for: Self.pollInterval) }
    }
}
