import Access
import Base
import Coaty
import Feeds
import Gate
import Network
import ProblemDetails
import Synchronization
import WebSocketServer

/// Session of one client on `/v1/ws`: handles its frames and answers each with the frame's id.
///
/// The server's only thread delivers the messages, one at a time.
final class SocketSession: WebSocketEndpoint.Client {
    /// Maximum length of an id, in bytes.
    static let maximumIdLength = 128

    struct State {
        /// The requests that were delivered to the client; nil until it has authenticated.
        var rights: AnswerRights?
        /// When a client that has not authenticated is disconnected.
        var authenticationDeadline: Deadline?
        /// Nil once the connection has closed.
        var places: Places?
        var identity: ClientIdentity?
        var isJoining = false
        var isClosed = false
    }

    /// Holder of the session's state. It is a separate object because closures capture it before the session is
    /// initialized.
    final class Store: Sendable {
        let state = Mutex(State())
    }

    let outbound: OutboundQueue
    /// Number of the connection in the services' `connections`.
    private let connectionNumber: Int
    let connection: WebSocketConnection
    let record: SocketRecord
    let services: ClientServices
    let client: GateClient
    let store = Store()
    /// Ends the objects that were advertised for as long as this connection.
    private let lifetime = ConnectionLifetime()

    /// - Parameter principal: nil if the client must authenticate first.
    init(
        _ connection: WebSocketConnection,
        _ principal: Principal?,
        _ record: SocketRecord,
        _ places: Places,
        _ services: ClientServices
    ) {
        self.connection = connection
        self.record = record
        self.services = services
        client = GateClient(services.gate, nil)
        outbound = OutboundQueue(
            WebSocketTransport(connection: connection),
            account: places.account,
            workers: services.workers,
            hasOneSubscription: false,
            onRefusal: { [client, record, services] subscription, problem in
                let op = subscription.wanted == nil ? ClientFrame.Op.request : .subscribe
                services.requestLog.failed(op, id: subscription.id, problem, record, client.principal)
            }
        )
        connectionNumber = services.connections.add(outbound, .webSocket, from: record.address) { [store] in
            store.state.withLock(\.identity)
        }
        store.state.withLock { $0.places = places }
        client.attach(
            applyRate: { [weak outbound] in outbound?.limit(to: $0) },
            expel: { [weak self] in self?.expel($0) }
        )
        if let principal {
            use(principal)
        } else {
            awaitAuthentication()
        }
    }

    // MARK: - Reading

    func received(_ message: WebSocketMessage) {
        guard case .text(let text) = message else {
            connection.close(.protocolError, "send JSON in text messages")
            return
        }
        // An unauthenticated client can't make the gateway parse long frames.
        if text.utf8.count > maximumUnauthenticatedLength, client.principal == nil {
            return disconnect(.notAuthenticated, "authenticate first")
        }
        var (id, op) = (String?.none, ClientFrame.Op?.none)
        do {
            let frame: ClientFrame
            do throws(PayloadError) {
                frame = try ClientFrame(Array(text.utf8), id: &id)
            } catch {
                try count(nil, text.utf8.count)
                throw error
            }
            op = frame.op
            try count(op, text.utf8.count)
            try handle(frame)
        } catch {
            fail(op, id: id, Problems.of(error))
        }
    }

    /// Answers a frame with `error`.
    func fail(_ op: ClientFrame.Op?, id: String?, _ problem: Problem) {
        services.requestLog.failed(op, id: id, problem, record, principal)
        outbound.reply(.error(problem), id: id)
    }

    private func handle(_ frame: ClientFrame) throws {
        switch frame.op {
        case .authenticate: try authenticate(frame)
        case .subscribe: try subscribe(frame)
        case .unsubscribe: try end(frame, isRequest: false)
        case .request: try request(frame)
        case .cancel: try end(frame, isRequest: true)
        case .publish:
            let publication = try ClientPublications.publication(
                in: frame.json,
                services.accounts.limits,
                besides: ClientFrame.members
            )
            let outcome = try services.gate.publish(
                publication,
                try frame.json["lifetime"].map { try ObjectLifetime($0, of: lifetime, services.accounts.limits) },
                from: identity,
                by: authenticated()
            )
            outbound.reply(ServerFrame(.ok, members: Array(outcome.members.utf8)), id: frame.id)
        case .respond: try respond(frame)
        case .identify: try identify(frame)
        case .ping:
            try frame.json.refuseMembers(besides: ClientFrame.members)
            outbound.reply(.pong, id: frame.id)
        }
    }

    /// The client's identity; nil if the gateway publishes for it.
    private var identity: ClientIdentity? { store.state.withLock(\.identity) }

    /// - Throws: `Problem` if the client has not authenticated.
    private func authenticated() throws(Problem) -> Principal {
        guard let principal else { throw Problems.notAuthenticated }
        return principal
    }

    /// Nil until the client has authenticated.
    var principal: Principal? { client.principal }

    private func answer(_ frame: ClientFrame, _ delivery: Delivery) {
        let members = #""deferred":\#(delivery == .deferred)"#
        outbound.reply(ServerFrame(.ok, members: Array(members.utf8)), id: frame.id)
    }

    // MARK: - Subscriptions and requests

    private func subscribe(_ frame: ClientFrame) throws {
        let parameters = FrameParameters(frame: frame.json, limits: services.accounts.limits)
        let event = try parameters.required("event")
        if let parameters = Observation.parameters(of: event) {
            let members = ClientFrame.members.union(["event"]).union(parameters).union(
                SubscriptionOptions.parameters
            )
            try frame.json.refuseMembers(besides: members)
        }
        guard let observation = try Observation(event: event, parameters) else {
            throw parameters.invalid("event", "must be one of \(Observation.names.joined(separator: ", "))")
        }
        let options = try SubscriptionOptions(parameters, of: observation)
        let operation = Observe(observation: observation, footprint: options.footprint)
        let activity = try services.gate.open(operation, for: client)
        try checkRoom(for: frame, activity)
        activity.start(options, id: frame.id, on: outbound)
    }

    private func request(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(
            besides: ClientFrame.members.union(RequestOptions.parameters).union(["event", "operation", "data"])
        )
        let parameters = FrameParameters(frame: frame.json, limits: services.accounts.limits)
        let options = try RequestOptions(parameters)
        _ = try authenticated()
        let name = try parameters.required("event")
        let operation = try parameters.level("operation")?.text
        guard let type = ClientRequests.type(named: name) else {
            throw parameters.invalid("event", "must be one of \(ClientRequests.names.joined(separator: ", "))")
        }
        guard type.hasOperation == (operation != nil) else {
            throw parameters.invalid("operation", type.hasOperation ? "is missing" : "is only for calls")
        }
        let request = try frame.json.data { payload in try type.parse(payload, operation: operation) }
        let activity = try services.gate.open(
            SendRequest(request: request, options: options, identity: identity),
            for: client
        )
        try checkRoom(for: frame, activity)
        let slot = outbound.open(id: frame.id, outcome: activity.outcome)
        slot.attach(activity)
        do {
            try activity.start(into: ResponseQueue(subscription: slot, outbound: outbound))
            outbound.begin(slot)
        } catch {
            let closing = outbound.close(slot)
            slot.release()
            // It was answered, if the request was refused meanwhile.
            if closing != .over { throw error }
        }
    }

    /// - Throws: `Problem` if the frame's id is in use or the client has too many subscriptions and requests.
    private func checkRoom(for frame: ClientFrame, _ activity: some Activity) throws(Problem) {
        let maximum = services.accounts.limits.activitiesPerConnection
        let problem: Problem
        if outbound.isOpen(frame.id) {
            problem = Problems.idInUse
        } else if outbound.openCount >= maximum {
            outbound.account.countRefusal(.connection, .own)
            problem = Problems.tooManyActivities(maximum)
        } else {
            return
        }
        activity.outcome.set(OperationCounts.Outcome(problem))
        throw problem
    }

    private func end(_ frame: ClientFrame, isRequest: Bool) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members)
        let (closing, subscription) = outbound.close(id: frame.id, isRequest: isRequest)
        subscription?.release()
        switch closing {
        // The client may have sent the frame before it received the end.
        case .over: throw isRequest ? Problems.noSuchRequest : Problems.noSuchSubscription
        case .held: fail(isRequest ? .request : .subscribe, id: frame.id, Problems.endedBeforeItBegan)
        case .begun: break
        }
        outbound.reply(.ok, id: frame.id)
        if isRequest { outbound.reply(.done(.cancelled), id: frame.id) }
    }

    // MARK: - Responses and identity

    private func respond(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members.union(["event", "correlationId", "data"]))
        let parameters = FrameParameters(frame: frame.json, limits: services.accounts.limits)
        let correlationId = CoatyUUID(wire: try parameters.required("correlationId"))
        let event = try parameters.required("event")
        guard let response = ClientRequests.answers.first(where: { $0.name == event }) else {
            let names = ClientRequests.answers.map(\.name).joined(separator: ", ")
            throw parameters.invalid("event", "must be one of \(names)")
        }
        let principal = try authenticated()
        guard let rights = store.state.withLock(\.rights) else { throw Problems.notAuthenticated }
        let delivery = try frame.json.data { payload in
            let operation = Answer(
                correlationId: correlationId,
                event: response,
                content: payload,
                rights: rights,
                identity: identity
            )
            return try services.gate.perform(operation, by: principal)
        }
        answer(frame, delivery)
    }

    private func identify(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members.union(["name", "resume"]))
        let parameters = FrameParameters(frame: frame.json, limits: services.accounts.limits)
        let name = try parameters.required("name")
        let maximumSize = parameters.limits.agentNameSize
        guard name.utf8.count <= maximumSize else {
            throw parameters.invalid("name", "must be at most \(maximumSize) bytes")
        }
        let operation = Identify(
            name: name,
            token: try parameters.text("resume"),
            isOpen: { [store] in store.state.withLock { !$0.isClosed } },
            disconnect: { [connection, lifetime] in
                // Before the identity leaves, because it deadvertises its objects.
                lifetime.end()
                connection.close(.identityResumed, "the identity was resumed on another connection")
            }
        )
        let principal = try authenticated()
        try store.state.withLock { state in
            guard state.identity == nil, !state.isJoining else { throw Problems.identifiedBefore }
            state.isJoining = true
        }
        Task { [self] in
            do {
                let identity = try await services.gate.perform(operation, by: principal)
                let isOpen = store.state.withLock { state in
                    state.isJoining = false
                    if !state.isClosed { state.identity = identity }
                    return !state.isClosed
                }
                guard isOpen else { return await identity.leave() }
                let token = #","resume":"\#(identity.resumeToken)""#
                let members = Array(#""identity":"#.utf8) + identity.identity + token.utf8
                outbound.reply(ServerFrame(.ok, members: members), id: frame.id)
            } catch {
                store.state.withLock { $0.isJoining = false }
                fail(.identify, id: frame.id, Problems.of(error))
            }
        }
    }

    // MARK: - End

    func closed() {
        let (identity, deadline) = store.state.withLock { state in
            let (identity, deadline) = (state.identity, state.authenticationDeadline)
            state = State(isClosed: true)
            return (identity, deadline)
        }
        deadline?.cancel()
        outbound.close()
        services.connections.remove(connectionNumber)
        client.leave()
        // Before the identity leaves, because it deadvertises its objects.
        lifetime.end()
        if let identity { Task { await identity.leave() } }
    }
}
