import HTTPServer
import Synchronization
import WebSocketServer

/// WebSocket endpoints: `GET /v1/ws` carries many subscriptions and requests on one connection, `GET /v1/ws/{event}` a single
/// subscription. `docs/websocket.md` describes the frames.
final class WebSocketEndpoint: WebSocketHandler {
    static let path = "/v1/ws"
    /// WebSocket subprotocol name of the frames.
    static let subprotocol = "coaty.v1"

    /// Handler of one connection.
    protocol Client: Sendable {
        var outbound: OutboundQueue { get }
        func received(_ message: WebSocketMessage)
        func closed()
    }

    private let hub: FeedHub
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
                let observation = try Observation(event: String(path.dropFirst(Self.path.count + 1)), parameters)
            else { return refuse(Problems.notFound(path)) }
            let options = try SubscriptionOptions(parameters, of: observation)
            if let problem = hub.refusal(of: observation) { return refuse(problem) }
            return .accept { [self] connection in
                let stream = SingleStream(WebSocketTransport(connection: connection), .webSocket, hub)
                add(SocketStream(stream: stream, connection: connection), connection)
                stream.start(observation, options, on: hub)
            }
        } catch {
            return refuse(Problems.of(error))
        }
    }

    /// Registers the response to requests for these paths without a WebSocket handshake: status 426.
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
        clients.withLock { $0[connection.id] }?.outbound.pump()
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

/// Handler of a WebSocket with a single subscription. The client must not send messages.
private struct SocketStream: WebSocketEndpoint.Client {
    let stream: SingleStream
    let connection: WebSocketConnection

    var outbound: OutboundQueue { stream.outbound }

    func received(_ message: WebSocketMessage) {
        connection.close(code: 1008, reason: "this stream takes no messages")
    }

    func closed() { stream.close() }
}
