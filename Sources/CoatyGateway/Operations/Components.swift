import Coaty
import Coordination
import HTTPServer
import WebSocketServer

/// The agent's membership in the Coaty network.
struct BrokerLink: Component {
    /// How long the start waits for the broker; then the gateway serves, and says that it is not ready.
    static let patience = Duration.seconds(5)

    let manager: CommunicationManager

    func start() async {
        manager.start()
        await withTaskGroup { group in
            group.addTask {
                for await state in manager.getCommunicationState() where state == .online { return }
            }
            group.addTask { try? await Task.sleep(for: Self.patience) }
            await group.next()
            group.cancelAll()
        }
    }

    func stop() async { await manager.stop() }
}

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
