import Coordination
import HTTPServer
import WebSocketServer

/// REST: answers what is under way before it stops.
struct RESTService: Component {
    /// How long requests that are under way may take to end.
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

/// Streams over WebSocket.
struct StreamService: Component {
    let server: WebSocketServer

    func start() async throws { try server.start() }

    func stop() async { server.stop() }
}

/// The root of the tree, which has no work of its own.
struct GatewayRoot: Component {
    func start() async {}
    func stop() async {}
}
