import Access
import Base
import Feeds
import Gate
import HTTPServer
package import ProblemDetails
import Synchronization
import WebSocketServer

/// WebSocket endpoints: `GET /v1/ws` carries many subscriptions and requests on one connection, `GET /v1/ws/{event}` a
/// single subscription. `docs/websocket.md` describes the frames.
package final class WebSocketEndpoint: WebSocketHandler {
    static let path = "/v1/ws"
    /// WebSocket subprotocol name of the frames.
    package static let subprotocol = "coaty.v1"

    /// Handler of one connection.
    protocol Client: Sendable {
        var outbound: OutboundQueue { get }
        /// Nil until the client has authenticated.
        var principal: Principal? { get }
        func received(_ message: WebSocketMessage)
        func closed()
    }

    private let services: ClientServices
    private let admission: ClientAdmission
    private let clients = Mutex<[WebSocketConnection.ID: (client: any Client, record: SocketRecord)]>([:])

    package init(services: ClientServices, addressing: ClientAddressing = .init()) {
        admission = ClientAdmission(authenticator: services.authenticator, addressing: addressing)
        self.services = services
    }

    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision {
        let identity = RequestIdentity(
            requestId: request.header("X-Request-Id"),
            traceparent: request.header("traceparent"),
            isRequired: services.requestLog.identifiesAll
        )
        return RequestIdentity.use(identity) { handshake(request, identity) }
    }

    private func handshake(_ request: borrowing WebSocketHandshake, _ identity: RequestIdentity?) -> WebSocketDecision {
        let record = SocketRecord(
            identity,
            route: request.path == Self.path ? Self.path : Self.path + "/{event}",
            address: admission.address(of: request)
        )
        do {
            let parameters = QueryParameters(items: request.queryItems, limits: services.accounts.limits)
            let policy = services.authenticator.access.policy
            try services.accounts.takeArrival(from: record.address, under: policy)
            let principal = try principal(of: request, ticket: parameters.text(QueryNames.ticket), from: record.address)
            if let principal { try services.accounts.take(.requests, of: principal, under: policy) }
            let path = request.path
            let encryption = request.connection?.encryptionCost ?? 0
            let event = path.hasPrefix(Self.path + "/") ? String(path.dropFirst(Self.path.count + 1)) : nil
            guard path == Self.path || event != nil else { return refuse(Problems.notFound(path), record) }
            let names: QueryNames = event == nil ? [QueryNames.ticket] : .stream
            try names.check(request.queryItems.lazy.map(\.name), event: event)
            guard let event else {
                let places = try SocketSession.Places(
                    of: principal,
                    address: record.address,
                    encryption: encryption,
                    in: services.accounts
                )
                return .accept { [self] connection in
                    add(SocketSession(connection, principal, record, places, services), connection, record)
                }
            }
            guard let observation = try Observation(event: event, parameters) else {
                return refuse(Problems.unknownEvent(event), record)
            }
            guard let principal else { return refuse(Problems.noToken, record) }
            let options = try SubscriptionOptions(parameters, of: observation)
            let places = try SocketSession.Places(services.accounts.account(of: principal), encryption: encryption)
            let client = GateClient(services.gate, principal)
            let operation = Observe(observation: observation, footprint: options.footprint)
            let activity = try services.gate.open(operation, for: client)
            return .accept { [self] connection in
                let stream = SingleStream(
                    WebSocketTransport(connection: connection),
                    .webSocket,
                    client,
                    principal,
                    services
                )
                add(SocketStream(stream: stream, connection: connection, places: places), connection, record)
                stream.start(activity, options)
            }
        } catch {
            let problem = Problems.of(error)
            services.authenticator.access.noteRefusal(problem, ofPageFrom: request.header("Origin"))
            return refuse(problem, record)
        }
    }

    /// Returns the principal of a handshake; nil if the client must authenticate in its first frame. A page in a
    /// browser must do so, because it can't send the header field.
    private func principal(
        of request: borrowing WebSocketHandshake,
        ticket: String?,
        from address: String
    ) throws -> Principal? {
        let host = request.header("Host")
        let browserPolicy = services.authenticator.access.browserPolicy
        let sender = try browserPolicy.sender(origin: request.header("Origin"), host: host)
        let authorization = request.header("Authorization")
        let principal = try admission.principal(of: request, authorization, ticket: ticket, from: address, sender)
        if let principal {
            if principal.subject.isAmbient { try browserPolicy.checkHost(host) }
            return principal
        }
        let policy = services.authenticator.access.policy
        guard policy.permissions(of: .anonymous) != nil else { return nil }
        do throws(Problem) {
            try browserPolicy.checkHost(host)
            return Principal(.anonymous, address: address, under: policy)
        } catch {
            // A foreign page can't authenticate. Pages of a public name that can authenticate must do so first.
            if policy.isOpen || request.path != Self.path { throw error }
            return nil
        }
    }

    /// Registers the response to requests for these paths without a WebSocket handshake on connections for other
    /// requests: status 426.
    static func registerPlain(in router: inout GatewayRouter) {
        router.onPublic(.get, path) { .response(upgradeRequired(at: $0.path).response()) }
        router.onPublic(.get, path + "/{event}") { .response(upgradeRequired(at: $0.path).response()) }
    }

    /// Returns the answer to a request for this path that is not a WebSocket handshake.
    package static func upgradeRequired(at path: String) -> Problem {
        let event = path.split(separator: "/").last.flatMap { last in Observation.names.first { $0 == last } }
        let stream = event.map { EventStreamResource.path.replacing("{event}", with: $0) }
        return Problem(
            type: Problems.typePrefix + "upgrade-required",
            title: "This resource is a WebSocket",
            status: 426,
            detail: "Open it with a WebSocket client, by a URL with ws: or wss:, on a new connection. "
                + "Without WebSocket, GET \(stream ?? EventStreamResource.path) sends events as Server-Sent Events.",
            headers: [("Upgrade", "websocket")]
        )
    }

    func received(_ message: WebSocketMessage, on connection: WebSocketConnection) {
        guard let (client, record) = clients.withLock({ $0[connection.id] }) else { return }
        record.note(received: message.size)
        RequestIdentity.use(record.identity) { client.received(message) }
    }

    func drained(_ connection: WebSocketConnection) {
        clients.withLock { $0[connection.id] }?.client.outbound.pump()
    }

    func closed(_ connection: WebSocketConnection, code: UInt16) {
        guard let (client, record) = clients.withLock({ $0.removeValue(forKey: connection.id) }) else { return }
        services.requestLog.closed(record, code: code, sentBytes: connection.sentBytes, client.principal)
        client.closed()
    }

    private func add(_ client: some Client, _ connection: WebSocketConnection, _ record: SocketRecord) {
        // Before the connection's first message.
        connection.budget = client.outbound.memory
        clients.withLock { $0[connection.id] = (client, record) }
    }

    private func refuse(_ problem: Problem, _ record: SocketRecord) -> WebSocketDecision {
        let id = record.identity?.id ?? RequestIdentity.makeId()
        services.requestLog.refused(record, id: id, problem)
        return .refuse(
            status: problem.status,
            headers: [("Content-Type", "application/problem+json")] + problem.headers.map { ($0.name, $0.value) }
                + [("X-Request-Id", id)],
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
    var principal: Principal? { stream.client.principal }

    func received(_ message: WebSocketMessage) {
        connection.close(.protocolError, "this stream takes no messages")
    }

    func closed() { stream.close() }
}

extension WebSocketMessage {
    /// The length of the message, in bytes.
    fileprivate var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }
}
