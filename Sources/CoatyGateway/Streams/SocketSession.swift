import Coaty
import HTTPServer
import Synchronization
import WebSocketServer

/// One client on `/v1/ws`: reads what it says, and answers by the ids it gives.
///
/// Its messages come on the one thread of the server, one after the other.
final class SocketSession: StreamEndpoint.Client {
    /// The most subscriptions and requests of a client at a time.
    static let maximumActivities = 256
    /// The longest id, in bytes.
    static let maximumIdLength = 128

    private struct Activity {
        let lane: Lane
        /// Nil until it has begun.
        var cancel: (@Sendable () -> Void)?
        let isRequest: Bool
    }

    private struct State {
        /// By the clients' ids, which are compared byte by byte.
        var activities: [WireName: Activity] = [:]
        var agent: VirtualAgent?
        var isJoining = false
        var isClosed = false
    }

    /// Holds the session's state, so that what an outlet tells at its end can come before the session is there.
    private final class Store: Sendable {
        let state = Mutex(State())

        func forget(_ lane: Lane) {
            let cancel = state.withLock { state -> (@Sendable () -> Void)? in
                guard let id = lane.id.map(WireName.init), state.activities[id]?.lane === lane else { return nil }
                return state.activities.removeValue(forKey: id)?.cancel
            }
            cancel?()
        }
    }

    let outlet: Outlet
    /// Which one it is of the hub's streams.
    private let number: Int
    private let connection: WebSocketConnection
    private let services: SocketServices
    private let store = Store()

    init(_ connection: WebSocketConnection, _ services: SocketServices) {
        self.connection = connection
        self.services = services
        outlet = Outlet(
            WebSocketTransport(connection: connection),
            memory: services.hub.waiting,
            hasOneLane: false,
            onEnd: { [store] in store.forget($0) }
        )
        number = services.hub.streams.add(outlet, .webSocket)
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
            try carryOut(frame)
        } catch {
            outlet.answer(.error(Problems.of(error)), id: id)
        }
    }

    private func carryOut(_ frame: ClientFrame) throws {
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
            outlet.answer(.pong, id: frame.id)
        }
    }

    /// Who publishes for the client.
    private var manager: CommunicationManager { store.state.withLock(\.agent)?.manager ?? services.hub.manager }

    private func answer(_ frame: ClientFrame, _ delivery: Delivery) {
        let members = #""deferred":\#(delivery == .deferred)"#
        outlet.answer(StreamFrame(.ok, members: Array(members.utf8)), id: frame.id)
    }

    // MARK: - Subscriptions and requests

    private func subscribe(_ frame: ClientFrame) throws {
        let parameters = FrameParameters(frame: frame.json)
        let event = try parameters.required("event")
        if let own = StreamRequest.Event(rawValue: event)?.parameters {
            let members = ClientFrame.members.union(["event"]).union(own).union(StreamOptions.parameters)
            try frame.json.refuseMembers(besides: members)
        }
        guard let wanted = try StreamRequest(event: event, parameters) else {
            let names = StreamRequest.Event.allCases.map(\.rawValue).joined(separator: ", ")
            throw parameters.invalid("event", "must be one of \(names)")
        }
        let options = try StreamOptions(parameters, of: wanted)
        if let problem = services.hub.refusal(of: wanted) { throw problem }
        let lane = try open(frame, options, wanted: wanted)
        hold(services.hub.subscribe(lane, to: wanted), lane)
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
            throw parameters.invalid("operation", name == "call" ? "is missing" : "is for calls alone")
        }
        let request = try frame.json.data { try EventRequest(event: name, operation: operation, payload: $0) }
        guard let request else { throw parameters.invalid("event", "must be one of call, discover, query, update") }
        let lane = try open(frame, StreamOptions(), wanted: nil)
        do {
            let sink = LaneSink(lane: lane, outlet: outlet)
            let run = try request.run(
                options,
                on: manager,
                into: sink,
                count: services.hub.asked,
                onResolve: services.hub.objects.note
            )
            hold({ run.cancel() }, lane)
            outlet.begin(lane)
        } catch {
            outlet.close(lane)
            store.forget(lane)
            throw error
        }
    }

    /// - Parameter wanted: what is observed; nil for a request.
    private func open(_ frame: ClientFrame, _ options: StreamOptions, wanted: StreamRequest?) throws -> Lane {
        let (lane, ended) = try store.state.withLock { state in
            let id = WireName(frame.id)
            var ended: [WireName: Activity] = [:]
            if state.activities[id] != nil || state.activities.count >= Self.maximumActivities {
                // The client may know of an end before it has been dealt with here.
                ended = state.activities.filter { !outlet.isOpen($0.value.lane) }
                for id in ended.keys { state.activities[id] = nil }
            }
            guard state.activities[id] == nil else { throw Problems.idInUse }
            guard state.activities.count < Self.maximumActivities else { throw Problems.tooManyActivities }
            let lane = outlet.open(id: frame.id, options: options, wanted: wanted)
            state.activities[id] = Activity(lane: lane, isRequest: wanted == nil)
            return (lane, ended.values)
        }
        for activity in ended { activity.cancel?() }
        return lane
    }

    /// Keeps what ends an activity, which may have ended by now.
    private func hold(_ cancel: @escaping @Sendable () -> Void, _ lane: Lane) {
        let isOver = store.state.withLock { state in
            guard let id = lane.id.map(WireName.init), state.activities[id]?.lane === lane else { return true }
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
        let closing = activity.map { outlet.close($0.lane) } ?? .over
        activity?.cancel?()
        switch closing {
        // The client may not yet have been told of an end that has been written.
        case .over: throw isRequest ? Problems.noSuchRequest : Problems.noSuchSubscription
        case .held: outlet.answer(.error(Problems.endedBeforeItBegan), id: frame.id)
        case .begun: break
        }
        outlet.answer(.ok, id: frame.id)
        if isRequest { outlet.answer(.done(.cancelled), id: frame.id) }
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
            guard state.agent == nil, !state.isJoining else { throw Problems.identifiedBefore }
            state.isJoining = true
        }
        let agent: VirtualAgent
        do {
            agent = try services.agents.agent(name: name)
        } catch {
            store.state.withLock { $0.isJoining = false }
            throw error
        }
        Task { [services, store, outlet] in
            let hasJoined = await services.agents.join(agent)
            let isWanted = store.state.withLock { state in
                state.isJoining = false
                if hasJoined, !state.isClosed { state.agent = agent }
                return state.agent != nil
            }
            if isWanted {
                outlet.answer(StreamFrame(.ok, members: Array(#""identity":"#.utf8) + agent.identity), id: frame.id)
            } else {
                outlet.answer(.error(Problems.notIdentified), id: frame.id)
                await services.agents.leave(agent)
            }
        }
    }

    // MARK: - End

    func closed() {
        let (activities, agent) = store.state.withLock { state in
            state.isClosed = true
            defer {
                state.activities = [:]
                state.agent = nil
            }
            return (state.activities.values, state.agent)
        }
        outlet.close()
        services.hub.streams.remove(number)
        for activity in activities { activity.cancel?() }
        if let agent { Task { [services] in await services.agents.leave(agent) } }
    }
}

/// What the clients on WebSockets work with.
struct SocketServices: Sendable {
    let hub: StreamHub
    let agents: VirtualAgents
    let browserPolicy: BrowserPolicy
    /// In milliseconds.
    let maximumTimeout: Int
}
