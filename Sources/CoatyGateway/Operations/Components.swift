import Coordination
import HTTPServer
import WebSocketServer

/// The REST API. Completes pending requests before it stops.
struct RESTService: Component {
    /// Maximum time for pending requests to complete.
    static let drainTimeout = Duration.seconds(5)
    private static let pollInterval = Duration.milliseconds(20)

    let server: HTTPServer

    func start() async throws { try server.start() }

    func stop() async {
        server.drain()
        let deadline = ContinuousClock.now + Self.drainTimeout
        while server.statistics.pending > 0, .now < deadline { try? await Task.sleep(for: Self.pollInterval) }
        server.stop()
    }
}

/// The WebSocket API.
struct StreamService: Component {
    let server: WebSocketServer

    func start() async throws { try server.start() }

    func stop() async { server.stop() }
}

/// The root of the component tree, which does nothing itself.
struct GatewayRoot: Component {
    func start() async {}
    func stop() async {}
}
