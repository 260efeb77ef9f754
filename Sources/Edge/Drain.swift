import Coordination
import Synchronization

/// The first step of a stop: `/readyz` answers 503 while the gateway still serves, so that load balancers send no
/// further clients.
package final class Drain: Component {
    /// The time for which the gateway still serves.
    package let delay: Duration
    private let hasBegun = Atomic(false)

    package init(delay: Duration) { self.delay = delay }

    package var isDraining: Bool { hasBegun.load(ordering: .relaxed) }

    func start() async {}

    func stop() async {
        hasBegun.store(true, ordering: .relaxed)
        if delay > .zero { try? await Task.sleep(for: delay) }
    }
}
