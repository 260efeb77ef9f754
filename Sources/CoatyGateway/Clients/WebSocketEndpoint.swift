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

    private let services: ClientServices
    private let addressing: ClientAddressing
    private let clients = Mutex<[WebSocketConnection.ID: any Client]>([:])

    init(services: ClientServices, addressing: ClientAddressing = .init()) {
        self.addressing = addressing
        self.services = services
    }

    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision {
        do {
            let parameters = QueryParameters(items: request.queryItems, limits: services.accounts.limits)
            let principal = try principal(of: request, parameters)
            let path = request.path
            let address = address(of: request)
            let encryption = ConnectionOrigin.of(request.context)?.encryptionCost ?? 0
            if path == Self.path {
                let places = try SocketSession.Places(
                    of: principal,
                    address: address,
                    encryption: encryption,
                    in: services.accounts
                )
                return .accept { [self] connection in
                    add(SocketSession(connection, principal, address: address, places, services), connection)
                }
            }
            guard path.hasPrefix(Self.path + "/"),
                let observation = try Observation(event: String(path.dropFirst(Self.path.count + 1)), parameters)
            else { return refuse(Problems.notFound(path)) }
            guard let principal else { return refuse(Problems.unauthorized) }
            let options = try SubscriptionOptions(parameters, of: observation)
            let places = try SocketSession.Places(services.accounts.account(of: principal), encryption: encryption)
            let operation = Observe(observation: observation, footprint: options.footprint)
            let permitted = try services.gate.perform(operation, by: principal)
            return .accept { [self] connection in
                let stream = SingleStream(
                    WebSocketTransport(connection: connection),
                    .webSocket,
                    principal,
                    services
                )
                add(SocketStream(stream: stream, connection: connection, places: places), connection)
                stream.start(permitted, options)
            }
        } catch {
            return refuse(Problems.of(error))
        }
    }

    /// The address of the client.
    private func address(of request: borrowing WebSocketHandshake) -> String {
        let peer = ConnectionOrigin.of(request.context)?.peer ?? request.peer
        guard let field = addressing.fieldName(forPeer: peer) else { return peer }
        return addressing.client(behind: peer, request.header(field))
    }

    /// Returns the principal of a handshake; nil if the client has to authenticate in its first frame, as a page in a browser must,
    /// which can't send the header field.
    private func principal(
        of request: borrowing WebSocketHandshake,
        _ parameters: QueryParameters
    ) throws -> Principal? {
        let host = request.header("Host")
        let browserPolicy = services.authenticator.access.browserPolicy
        let sender = try browserPolicy.sender(ofHandshake: request.header("Origin"), host: host)
        let principal = try services.authenticator.principal(
            authorization: request.header("Authorization"),
            ticket: parameters.text("ticket"),
            certificate: ConnectionOrigin.of(request.context)?.certificate(addressing),
            origin: sender.origin,
            address: address(of: request)
        )
        if let principal {
            if principal.subject.isAmbient { try browserPolicy.checkHost(host) }
            return principal
        }
        let policy = services.authenticator.access.policy
        guard policy.permissions(of: .anonymous) != nil else { return nil }
        do throws(Problem) {
            try browserPolicy.checkHost(host)
            return Principal(.anonymous, address: address(of: request), under: policy)
        } catch {
            // A foreign page can't authenticate. Pages of a public name that can must do so before anything else.
            if policy.isOpen || request.path != Self.path { throw error }
            return nil
        }
    }

    /// Registers the response to requests for these paths without a WebSocket handshake: status 426.
    static func registerPlain(in router: inout GatewayRouter) {
        let upgradeRequired = Problem(
            type: Problems.typePrefix + "upgrade-required",
            title: "This resource is a WebSocket",
            status: 426,
            detail: "Open it with a WebSocket handshake, on a connection of its own.",
            headers: [("Upgrade", "websocket")]
        ).response()
        router.onPublic(.get, path) { _ in .response(upgradeRequired) }
        router.onPublic(.get, path + "/{event}") { _ in .response(upgradeRequired) }
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
        // Before its first message.
        connection.budget = client.outbound.memory
        clients.withLock { $0[connection.id] = client }
    }

    private func refuse(_ problem: Problem) -> WebSocketDecision {
        .refuse(
            status: problem.status,
            headers: [("Content-Type", "application/problem+json")] + problem.headers.map { ($0.name, $0.value) },
            body: problem.body
        )
    }
}

/// Handler of a WebSocket with a single subscription. The client must not send messages.
private struct SocketStream: WebSocketEndpoint.Client {
    let stream: SingleStream
    let connection: WebSocketConnection
    let places: SocketSession.Places

    var outbound: OutboundQueue { stream.outbound }

    func received(_ message: WebSocketMessage) {
        connection.close(.protocolError, "this stream takes no messages")
    }

    func closed() { stream.close() }
}
