import Base
import Coordination
import HTTPServer
import Synchronization
import WebSocketServer

/// Components that stop concurrently and share the time of a stop.
struct ComponentGroup: Component {
    let components: [any Component]

    func start() async throws {
        for component in components { try await component.start() }
    }

    func stop() async {
        await withTaskGroup { group in
            for component in components { group.addTask { await component.stop() } }
        }
    }
}

/// The first step of a stop: `/readyz` answers 503 while the gateway still serves, so that load balancers send no
/// further clients.
final class Drain: Component {
    /// The time for which the gateway still serves.
    let delay: Duration
    private let hasBegun = Atomic(false)

    init(delay: Duration) { self.delay = delay }

    var isDraining: Bool { hasBegun.load(ordering: .relaxed) }

    func start() async {}

    func stop() async {
        hasBegun.store(true, ordering: .relaxed)
        if delay > .zero { try? await Task.sleep(for: delay) }
    }
}

/// The REST API. Completes pending requests before it stops.
struct RESTService: Component {
    /// Maximum time for pending requests to complete with the default stop timeout, including the drain delay: the
    /// drain delay does not prolong the stop.
    static let drainTimeout = Duration.seconds(2)
    /// Maximum time for answers that have begun to be sent.
    static let sendTimeout = Duration.milliseconds(500)
    private static let pollInterval = Duration.milliseconds(20)

    let server: HTTPServer
    /// Serves the gateway's health, independent of the load on the other server.
    let health: HTTPServer
    /// Maximum time for pending requests to complete.
    let drainTimeout: Duration
    /// Asks the clients of event streams to reconnect.
    let announceStop: @Sendable () -> Void

    func start() async throws {
        try server.start()
        try health.start()
    }

    func stop() async {
        server.drain()
        health.drain()
        let deadline = ContinuousClock.now + drainTimeout
        while server.statistics.pending > 0, .now < deadline { try? await Task.sleep(for: Self.pollInterval) }
        announceStop()
        await onBlockingThread {
            server.stop()
            health.stop()
        }
    }
}

/// The WebSocket API.
struct StreamService: Component {
    /// Maximum time for clients to answer the close of their connection.
    static let closeTimeout = Duration.milliseconds(700)

    let server: WebSocketServer

    func start() async throws { try server.start() }

    func stop() async { await onBlockingThread { server.stop(within: Self.closeTimeout) } }
}

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
