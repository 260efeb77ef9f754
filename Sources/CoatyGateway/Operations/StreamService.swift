import Base
import Coordination
import WebSocketServer

/// The WebSocket API.
struct StreamService: Component {
    /// Maximum time for clients to answer the close of their connection.
    static let closeTimeout = Duration.milliseconds(700)

    let server: WebSocketServer

    func start() async throws { try server.start() }

    func stop() async { await onBlockingThread { server.stop(within: Self.closeTimeout) } }
}
