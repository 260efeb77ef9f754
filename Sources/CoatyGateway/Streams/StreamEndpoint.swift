import HTTPServer
import Synchronization
import WebSocketServer

/// `GET /v1/ws`: any number of subscriptions and requests on one connection; `GET /v1/ws/{event}`: one subscription a
/// connection. `docs/websocket.md` describes the frames.
final class StreamEndpoint: WebSocketHandler {
    static let path = "/v1/ws"
    /// The subprotocol of the frames.
    static let subprotocol = "coaty.v1"

    /// What is at the other end of a connection.
    protocol Client: Sendable {
        var outlet: Outlet { get }
        func received(_ message: WebSocketMessage)
        func closed()
    }

    private let hub: StreamHub
    private let services: SocketServices
    private let clients = Mutex<[WebSocketConnection.ID: any Client]>([:])

    init(services: SocketServices) {
        hub = services.hub
        self.services = services
    }

    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision {
        do throws(Problem) {
            try services.browserPolicy.checkHandshake(origin: request.header("Origin"), host: request.header("Host"))
        } catch {
            return refuse(error)
        }
        let path = request.path
        if path == Self.path {
            return .accept { [self] connection in
                add(SocketSession(connection, services), connection)
            }
        }
        do {
            let parameters = QueryParameters(items: request.queryItems)
            guard path.hasPrefix(Self.path + "/"),
                let wanted = try StreamRequest(event: String(path.dropFirst(Self.path.count + 1)), parameters)
            else { return refuse(Problems.notFound(path)) }
            let options = try StreamOptions(parameters, of: wanted)
            if let problem = hub.refusal(of: wanted) { return refuse(problem) }
            return .accept { [self] connection in
                let stream = SingleStream(WebSocketTransport(connection: connection), .webSocket, hub)
                add(SocketStream(stream: stream, connection: connection), connection)
                stream.start(wanted, options, on: hub)
            }
        } catch {
            return refuse(Problems.of(error))
        }
    }

    /// Requests for a stream that are no handshake, on a connection that carries REST.
    static func registerPlain(in router: inout Router) {
        let upgradeRequired = Problem(
            type: Problems.typePrefix + "upgrade-required",
            title: "This resource is a WebSocket",
            status: 426,
            detail: "Open it with a WebSocket handshake, on a connection of its own."
        ).response(headers: [("Upgrade", "websocket")])
        router.on(.get, path) { _ in .response(upgradeRequired) }
        router.on(.get, path + "/{event}") { _ in .response(upgradeRequired) }
    }

    func received(_ message: WebSocketMessage, on connection: WebSocketConnection) {
        clients.withLock { $0[connection.id] }?.received(message)
    }

    func drained(_ connection: WebSocketConnection) {
        clients.withLock { $0[connection.id] }?.outlet.pump()
    }

    func closed(_ connection: WebSocketConnection, code: UInt16) {
        clients.withLock { $0.removeValue(forKey: connection.id) }?.closed()
    }

    private func add(_ client: some Client, _ connection: WebSocketConnection) {
        clients.withLock { $0[connection.id] = client }
    }

    private func refuse(_ problem: Problem) -> WebSocketDecision {
        .refuse(
            status: problem.status,
            headers: [("Content-Type", "application/problem+json")],
            body: problem.body
        )
    }
}

/// One subscription on a WebSocket of its own.
private struct SocketStream: StreamEndpoint.Client {
    let stream: SingleStream
    let connection: WebSocketConnection

    var outlet: Outlet { stream.outlet }

    func received(_ message: WebSocketMessage) {
        connection.close(code: 1008, reason: "this stream takes no messages")
    }

    func closed() { stream.close() }
}
