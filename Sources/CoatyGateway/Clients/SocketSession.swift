import Coaty
import HTTPServer
import Synchronization
import WebSocketServer

/// Session of one client on `/v1/ws`: handles its frames and answers each with the frame's id.
///
/// The server's only thread delivers the messages, one at a time.
final class SocketSession: WebSocketEndpoint.Client {
    /// Maximum number of concurrent subscriptions and requests of a client.
    static let maximumActivities = 256
    /// Maximum length of an id, in bytes.
    static let maximumIdLength = 128

    private struct Activity {
        let subscription: ClientSubscription
        /// Nil until the feed or the request has started.
        var cancel: (@Sendable () -> Void)?
        let isRequest: Bool
    }

    private struct State {
        /// Keyed by the client's ids, which are compared byte by byte.
        var activities: [WireName: Activity] = [:]
        var identity: ClientIdentity?
        var isJoining = false
        var isClosed = false
    }

    /// Holder of the session's state. It is separate because the outbound queue's `onEnd` captures it before the session is
    /// initialized.
    private final class Store: Sendable {
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
    /// Number of the connection in the hub's `streams`.
    private let connectionNumber: Int
    private let connection: WebSocketConnection
    private let services: SocketServices
    private let store = Store()

    init(_ connection: WebSocketConnection, _ services: SocketServices) {
        self.connection = connection
        self.services = services
        outbound = OutboundQueue(
            WebSocketTransport(connection: connection),
            memory: services.hub.queueMemory,
            hasOneSubscription: false,
            onEnd: { [store] in store.remove($0) }
        )
        connectionNumber = services.hub.streams.add(outbound, .webSocket)
    }

    // MARK: - Reading

    func received(_ message: WebSocketMessage) {
        guard case .text(let text) = message else {
            connection.close(code: 1003, reason: "send JSON in text messages")
            return
        }
        var id: String?
        do {
            let frame = try ClientFrame(Array(text.utf8), id: &id)
            try handle(frame)
        } catch {
            outbound.reply(.error(Problems.of(error)), id: id)
        }
    }

    private func handle(_ frame: ClientFrame) throws {
        switch frame.op {
        case .subscribe: try subscribe(frame)
        case .unsubscribe: try end(frame, isRequest: false)
        case .request: try request(frame)
        case .cancel: try end(frame, isRequest: true)
        case .publish:
            let publication = try PublicationRequest(frame.json, besides: ClientFrame.members)
            answer(frame, try publication.publish(on: manager))
        case .respond: try respond(frame)
        case .identify: try identify(frame)
        case .ping:
            try frame.json.refuseMembers(besides: ClientFrame.members)
            outbound.reply(.pong, id: frame.id)
        }
    }

    /// Communication manager that publishes for the client: that of its identity, or else the gateway's.
    private var manager: CommunicationManager { store.state.withLock(\.identity)?.manager ?? services.hub.manager }

    private func answer(_ frame: ClientFrame, _ delivery: Delivery) {
        let members = #""deferred":\#(delivery == .deferred)"#
        outbound.reply(ServerFrame(.ok, members: Array(members.utf8)), id: frame.id)
    }

    // MARK: - Subscriptions and requests

    private func subscribe(_ frame: ClientFrame) throws {
        let parameters = FrameParameters(frame: frame.json)
        let event = try parameters.required("event")
        if let eventParameters = Observation.Event(rawValue: event)?.parameters {
            let members = ClientFrame.members.union(["event"]).union(eventParameters).union(
                SubscriptionOptions.parameters
            )
            try frame.json.refuseMembers(besides: members)
        }
        guard let observation = try Observation(event: event, parameters) else {
            let names = Observation.Event.allCases.map(\.rawValue).joined(separator: ", ")
            throw parameters.invalid("event", "must be one of \(names)")
        }
        let options = try SubscriptionOptions(parameters, of: observation)
        if let problem = services.hub.refusal(of: observation) { throw problem }
        let subscription = try open(frame, options, observation)
        setCancel(services.hub.subscribe(subscription, to: observation), of: subscription)
    }

    private func request(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(
            besides: ClientFrame.members.union(["event", "operation", "data", "limit", "timeout", "until"])
        )
        let parameters = FrameParameters(frame: frame.json)
        let options = try RequestOptions(parameters, maximumTimeout: services.maximumTimeout)
        let name = try parameters.required("event")
        let operation = try parameters.level("operation")?.text
        guard (name == "call") == (operation != nil) else {
            throw parameters.invalid("operation", name == "call" ? "is missing" : "is only for calls")
        }
        let request = try frame.json.data { try EventRequest(event: name, operation: operation, payload: $0) }
        guard let request else { throw parameters.invalid("event", "must be one of call, discover, query, update") }
        let subscription = try open(frame, SubscriptionOptions(), nil)
        do {
            let sink = ResponseQueue(subscription: subscription, outbound: outbound)
            let run = try request.run(
                options,
                on: manager,
                into: sink,
                count: services.hub.asked,
                onResolve: services.hub.objects.note
            )
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
    /// - Parameter observation: the observation to subscribe to; nil for a request.
    /// - Throws: `Problem` if the id is in use or the client has too many subscriptions and requests.
    private func open(
        _ frame: ClientFrame,
        _ options: SubscriptionOptions,
        _ observation: Observation?
    ) throws -> ClientSubscription {
        let (subscription, ended) = try store.state.withLock { state in
            let id = WireName(frame.id)
            var ended: [WireName: Activity] = [:]
            if state.activities[id] != nil || state.activities.count >= Self.maximumActivities {
                // `onEnd` runs on a task: the client may have received an end whose activity is still registered.
                ended = state.activities.filter { !outbound.isOpen($0.value.subscription) }
                for id in ended.keys { state.activities[id] = nil }
            }
            guard state.activities[id] == nil else { throw Problems.idInUse }
            guard state.activities.count < Self.maximumActivities else { throw Problems.tooManyActivities }
            let subscription = outbound.open(id: frame.id, options: options, wanted: observation)
            state.activities[id] = Activity(subscription: subscription, isRequest: observation == nil)
            return (subscription, ended.values)
        }
        for activity in ended { activity.cancel?() }
        return subscription
    }

    /// Stores the closure that cancels an activity, or calls it at once if the activity has ended.
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
        case .held: outbound.reply(.error(Problems.endedBeforeItBegan), id: frame.id)
        case .begun: break
        }
        outbound.reply(.ok, id: frame.id)
        if isRequest { outbound.reply(.done(.cancelled), id: frame.id) }
    }

    // MARK: - Responses and identity

    private func respond(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members.union(["event", "correlationId", "data"]))
        let parameters = FrameParameters(frame: frame.json)
        let correlationId = CoatyUUID(wire: try parameters.required("correlationId"))
        let event = try parameters.required("event")
        guard ObservedRequests.responses.contains(event) else {
            let names = ObservedRequests.responses.joined(separator: ", ")
            throw parameters.invalid("event", "must be one of \(names)")
        }
        let delivery = try frame.json.data { payload in
            try services.hub.requests.respond(to: correlationId, with: event, payload, by: manager)
        }
        answer(frame, delivery)
    }

    private func identify(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members.union(["name"]))
        let name = try FrameParameters(frame: frame.json).required("name")
        try store.state.withLock { state in
            guard state.identity == nil, !state.isJoining else { throw Problems.identifiedBefore }
            state.isJoining = true
        }
        let identity: ClientIdentity
        do {
            identity = try services.agents.agent(name: name)
        } catch {
            store.state.withLock { $0.isJoining = false }
            throw error
        }
        Task { [services, store, outbound] in
            let hasJoined = await services.agents.join(identity)
            let isIdentified = store.state.withLock { state in
                state.isJoining = false
                if hasJoined, !state.isClosed { state.identity = identity }
                return state.identity != nil
            }
            if isIdentified {
                outbound.reply(
                    ServerFrame(.ok, members: Array(#""identity":"#.utf8) + identity.identity),
                    id: frame.id
                )
            } else {
                outbound.reply(.error(Problems.notIdentified), id: frame.id)
                await services.agents.leave(identity)
            }
        }
    }

    // MARK: - End

    func closed() {
        let (activities, identity) = store.state.withLock { state in
            state.isClosed = true
            defer {
                state.activities = [:]
                state.identity = nil
            }
            return (state.activities.values, state.identity)
        }
        outbound.close()
        services.hub.streams.remove(connectionNumber)
        for activity in activities { activity.cancel?() }
        if let identity { Task { [services] in await services.agents.leave(identity) } }
    }
}

/// Dependencies that all WebSocket sessions share.
struct SocketServices: Sendable {
    let hub: FeedHub
    let agents: ClientIdentities
    let browserPolicy: BrowserPolicy
    /// Maximum timeout of a request, in milliseconds.
    let maximumTimeout: Int
}
