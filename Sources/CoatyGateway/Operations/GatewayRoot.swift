import Coordination

/// The root of the component tree. The gateway can't continue without one of its children: if a child requests
/// dismissal, the gateway stops.
struct GatewayRoot: Component {
    /// Called with the name of the child, on any thread.
    var onDismissalRequest: @Sendable (String) -> Void = { _ in }

    func start() async {}
    func stop() async {}

    func childRequestedDismissal(_ child: AnyCoordinator) -> Bool {
        onDismissalRequest(child.name)
        return false
    }
}
