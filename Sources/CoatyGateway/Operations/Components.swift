import Base
import Coordination
import Edge
import Feeds
import Gate
import HTTPServer
import Logging
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

/// The work of clients in the coordinator tree. While it is paused, the gate refuses new work, and `/readyz` responds
/// with 503. Pending requests complete, subscriptions continue, and all streams get a notice.
struct ClientWork: Component {
    let state: PauseState
    let connections: ClientConnections
    let logger: Logger

    func start() async {}
    func stop() async {}

    func pause() async {
        // Before the streams are notified.
        state.set(true)
        connections.announce(.paused)
        logger.notice("paused: new work is refused", metadata: ["streams": "\(connections.count)"])
    }

    func resume() async {
        state.set(false)
        connections.announce(.active)
        logger.notice("resumed")
    }
}
