import Access
import Base
import Coaty
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

    struct Activity {
        let subscription: ClientSubscription
        /// Nil until the feed or the request has started.
        var cancel: (@Sendable () -> Void)?
        /// The pending request; nil for a subscription.
        var request: PermittedRequest?
        let isRequest: Bool
    }

    struct State {
        /// Nil until the client has authenticated.
        var principal: Principal?
        /// The requests that were delivered to the client; nil until it has authenticated.
        var rights: AnswerRights?
        /// When a client that has not authenticated is disconnected.
        var authenticationDeadline: Deadline?
        /// Nil once the connection has closed.
        var places: Places?
        /// When the principal expires; nil if it does not.
        var expiry: Deadline?
        /// Ends the observation of the access policy.
        var ignoreAccess: (@Sendable () -> Void)?
        /// Keyed by the client's ids, which are compared byte by byte.
        var activities: [WireName: Activity] = [:]
        var identity: ClientIdentity?
        var isJoining = false
        var isClosed = false
    }

    /// Holder of the session's state. It is a separate object because the outbound queue's `onEnd` captures it before
    /// the session is initialized.
    final class Store: Sendable {
        let state = Mutex(State())

        func remove(_ subscription: ClientSubscription) {
            let cancel = state.withLock { state -> (@Sendable () -> Void)? in
                guard let id = subscription.id.map(WireName.init),
                    state.activities[id]?.subscription === subscription
                else { return nil }
                return state.activities.removeValue(forKey: id)?.cancel
            }
            cancel?()
        }
    }

    let outbound: OutboundQueue
    /// Number of the connection in the services' `connections`.
    private let connectionNumber: Int
    let connection: WebSocketConnection
    let record: SocketRecord
    let services: ClientServices
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
        outbound = OutboundQueue(
            WebSocketTransport(connection: connection),
            account: places.account,
            workers: services.workers,
            hasOneSubscription: false,
            onEnd: { [store] in store.remove($0) },
            onRefusal: { [store, record, services] subscription, problem in
                let op = subscription.wanted == nil ? ClientFrame.Op.request : .subscribe
                services.requestLog.failed(op, id: subscription.id, problem, record, store.state.withLock(\.principal))
            }
        )
        connectionNumber = services.connections.add(outbound, .webSocket, from: record.address) { [store] in
            store.state.withLock(\.identity)
        }
        store.state.withLock { $0.places = places }
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
        if text.utf8.count > maximumUnauthenticatedLength, store.state.withLock({ $0.principal == nil }) {
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
            let publication = try PublicationRequest(frame.json, services.accounts.limits, besides: ClientFrame.members)
            let operation = Publish(
                publication: publication,
                lifetime: try ObjectLifetime.lifetime(in: frame.json, of: lifetime, services.accounts.limits),
                identity: identity
            )
            let outcome = try services.gate.perform(operation, by: authenticated())
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
    var principal: Principal? { store.state.withLock(\.principal) }

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
        let principal = try authenticated()
        let operation = Observe(observation: observation, footprint: options.footprint)
        let permitted = try services.gate.perform(operation, by: principal)
        let subscription = try open(frame, options, permitted)
        setCancel(permitted.start(subscription), of: subscription)
        // The policy may have changed between the decision and the registration, at which a change is applied.
        judge(subscription, observation)
    }

    private func request(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(
            besides: ClientFrame.members.union(RequestOptions.parameters).union(["event", "operation", "data"])
        )
        let parameters = FrameParameters(frame: frame.json, limits: services.accounts.limits)
        let options = try RequestOptions(parameters)
        let principal = try authenticated()
        let name = try parameters.required("event")
        let operation = try parameters.level("operation")?.text
        guard let type = ClientRequests.type(named: name) else {
            throw parameters.invalid("event", "must be one of \(ClientRequests.names.joined(separator: ", "))")
        }
        guard type.hasOperation == (operation != nil) else {
            throw parameters.invalid("operation", type.hasOperation ? "is missing" : "is only for calls")
        }
        let request = try frame.json.data { payload in try type.parse(payload, operation: operation) }
        let permitted = try services.gate.perform(
            SendRequest(request: request, options: options, identity: identity),
            by: principal
        )
        let subscription = try open(frame, SubscriptionOptions(), nil)
        do {
            setJudge(permitted, of: subscription)
            let run = try permitted.start(into: ResponseQueue(subscription: subscription, outbound: outbound))
            setCancel({ run.cancel() }, of: subscription)
            outbound.begin(subscription)
        } catch {
            outbound.close(subscription)
            store.remove(subscription)
            throw error
        }
    }

    /// Opens a subscription in the outbound queue and registers it under the frame's id.
    ///
    /// - Parameter permitted: the observation to subscribe to; nil for a request.
    /// - Throws: `Problem` if the id is in use or the client has too many subscriptions and requests.
    private func open(
        _ frame: ClientFrame,
        _ options: SubscriptionOptions,
        _ permitted: PermittedObservation?
    ) throws -> ClientSubscription {
        let maximum = services.accounts.limits.activitiesPerConnection
        let opened = try store.state.withLock { state -> (ClientSubscription, [Activity])? in
            let id = WireName(frame.id)
            var ended: [WireName: Activity] = [:]
            if state.activities[id] != nil || state.activities.count >= maximum {
                // `onEnd` runs on a task: the client may have received an end whose activity is still registered.
                ended = state.activities.filter { !outbound.isOpen($0.value.subscription) }
                for id in ended.keys { state.activities[id] = nil }
            }
            guard state.activities[id] == nil else { throw Problems.idInUse }
            guard state.activities.count < maximum else { return nil }
            let subscription = outbound.open(
                id: frame.id,
                options: options,
                wanted: permitted?.observation,
                view: permitted?.view
            )
            state.activities[id] = Activity(subscription: subscription, isRequest: permitted == nil)
            return (subscription, Array(ended.values))
        }
        guard let (subscription, ended) = opened else {
            outbound.account.countRefusal(.connection, .own)
            throw Problems.tooManyActivities(maximum)
        }
        for activity in ended { activity.cancel?() }
        return subscription
    }

    /// Stores a request, so that a change of the access policy applies to its answers.
    private func setJudge(_ request: PermittedRequest, of subscription: ClientSubscription) {
        guard let id = subscription.id.map(WireName.init) else { return }
        store.state.withLock { state in
            if state.activities[id]?.subscription === subscription { state.activities[id]?.request = request }
        }
    }

    /// Stores the closure that cancels an activity, or calls it immediately if the activity has ended.
    private func setCancel(_ cancel: @escaping @Sendable () -> Void, of subscription: ClientSubscription) {
        let isOver = store.state.withLock { state in
            guard let id = subscription.id.map(WireName.init),
                state.activities[id]?.subscription === subscription
            else { return true }
            state.activities[id]?.cancel = cancel
            return false
        }
        if isOver { cancel() }
    }

    private func end(_ frame: ClientFrame, isRequest: Bool) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members)
        let activity = store.state.withLock { state in
            let id = WireName(frame.id)
            return state.activities[id]?.isRequest == isRequest ? state.activities.removeValue(forKey: id) : nil
        }
        let closing = activity.map { outbound.close($0.subscription) } ?? .over
        activity?.cancel?()
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
        let (activities, identity, ignoreAccess, deadlines) = store.state.withLock { state in
            state.isClosed = true
            defer {
                state.activities = [:]
                state.identity = nil
                state.ignoreAccess = nil
                state.authenticationDeadline = nil
                state.expiry = nil
                state.places = nil
            }
            return (
                state.activities.values, state.identity, state.ignoreAccess,
                [state.authenticationDeadline, state.expiry]
            )
        }
        ignoreAccess?()
        for deadline in deadlines { deadline?.cancel() }
        outbound.close()
        services.connections.remove(connectionNumber)
        for activity in activities { activity.cancel?() }
        // Before the identity leaves, because it deadvertises its objects.
        lifetime.end()
        if let identity { Task { await identity.leave() } }
    }
}
