import Coaty
import HTTPServer
import Synchronization
import WebSocketServer

/// Brings events to stream connections: one subscription, and one frame an event, for all who want the same.
///
/// Connections come and go on one thread; events come, and what is observed ends, on any.
final class StreamHub: Sendable {
    private struct Group {
        var subscription: Subscription?
        var connections: [WebSocketConnection] = []
        /// What a connection that comes later has to get first.
        var state: WebSocketFrame?
    }

    private struct State {
        var groups: [StreamRequest: Group] = [:]
        var requests: [WebSocketConnection.ID: StreamRequest] = [:]
        /// What ends the watching of a context; nil until it has begun.
        var watches: [WebSocketConnection.ID: (@Sendable () -> Void)?] = [:]
    }

    private let manager: CommunicationManager
    private let ioNodes: IoNodeRegistry
    private let routing: RoutingAdmin
    private let state = Mutex(State())

    init(manager: CommunicationManager, ioNodes: IoNodeRegistry, routing: RoutingAdmin) {
        self.manager = manager
        self.ioNodes = ioNodes
        self.routing = routing
    }

    /// Why there is nothing to observe; nil where there is.
    func refusal(of request: StreamRequest) -> Problem? {
        switch request {
        case .advertisedCoreType, .advertisedObjectType, .deadvertise, .channel: nil
        case .ioValue(let id): ioNodes.actor(id) == nil ? Problems.notRegistered("IO actor") : nil
        case .ioState(let id): ioNodes.agent(ofPoint: id) == nil ? Problems.notRegistered("IO point") : nil
        case .routing(let id):
            if !routing.isKnown(id) {
                Problems.unknownContext(id)
            } else {
                routing.feed.hasRoom(for: id) ? nil : Problems.tooManyAssociations
            }
        }
    }

    func add(_ connection: WebSocketConnection, to request: StreamRequest) {
        if case .routing(let id) = request {
            watch(id, connection)
            return
        }
        let isFirst = state.withLock { state in
            let isFirst = state.groups[request] == nil
            state.requests[connection.id] = request
            state.groups[request, default: Group()].connections.append(connection)
            if let frame = state.groups[request]?.state { connection.send(frame) }
            return isFirst
        }
        guard isFirst else { return }
        // Not under the lock: the state of an IO point comes at once.
        let subscription = subscribe(request)
        let isKept = state.withLock { state in
            state.groups[request]?.subscription = subscription
            return state.groups[request] != nil
        }
        if !isKept { subscription?.cancel() }
        // A node that went before the subscription does not end it.
        if refusal(of: request) != nil { end(request) }
    }

    /// Sends the associations of a context: as they are, which each connection gets by itself, then each change.
    private func watch(_ id: CoatyUUID, _ connection: WebSocketConnection) {
        state.withLock { _ = $0.watches.updateValue(nil, forKey: connection.id) }
        Task {
            let end = await routing.watch(id) { frames in
                for frame in frames { connection.send(frame) }
            }
            let isKept = state.withLock { state in
                guard state.watches[connection.id] != nil else { return false }
                state.watches.updateValue(end, forKey: connection.id)
                return true
            }
            if !isKept { end?() }
            if end == nil { connection.close(code: 1001, reason: "the IO context is gone") }
        }
    }

    func remove(_ connection: WebSocketConnection) {
        if let watch = state.withLock({ $0.watches.removeValue(forKey: connection.id) }) {
            watch?()
            return
        }
        let group = state.withLock { state -> Group? in
            guard let request = state.requests.removeValue(forKey: connection.id) else { return nil }
            state.groups[request]?.connections.removeAll { $0.id == connection.id }
            guard state.groups[request]?.connections.isEmpty ?? false else { return nil }
            return state.groups.removeValue(forKey: request)
        }
        group?.subscription?.cancel()
    }

    /// Closes the connections of an IO point that has gone.
    private func end(_ request: StreamRequest) {
        let group = state.withLock { $0.groups.removeValue(forKey: request) }
        for connection in group?.connections ?? [] {
            connection.close(code: 1001, reason: "the IO node is withdrawn")
        }
        group?.subscription?.cancel()
    }

    private func subscribe(_ request: StreamRequest) -> Subscription? {
        switch request {
        case .routing: nil
        case .advertisedCoreType(let coreType):
            subscribe(.advertise(withCoreType: coreType), "advertise", request)
        case .advertisedObjectType(let objectType):
            (try? .advertise(withObjectType: objectType.text)).map { subscribe($0, "advertise", request) }
        case .deadvertise:
            subscribe(.deadvertise, "deadvertise", request)
        case .channel(let channelId):
            (try? .channel(channelId.text)).map { subscribe($0, "channel", request) }
        case .ioValue(let id):
            ioNodes.agent(ofPoint: id)?.subscribe(ioValuesOf: id) { [weak self] in
                self?.end(request)
            } handler: { [weak self] event in
                self?.send(to: request) { EventFrame.text(event, actor: id) }
            }
        case .ioState(let id):
            ioNodes.agent(ofPoint: id)?.subscribe(ioStateOf: id) { [weak self] in
                self?.end(request)
            } handler: { [weak self] event in
                self?.send(state: EventFrame.text(event, point: id), to: request)
            }
        }
    }

    private func subscribe<Event>(
        _ observation: EventObservation<Event>,
        _ name: String,
        _ request: StreamRequest
    ) -> Subscription {
        manager.subscribe(observation) { [weak self] event in
            self?.send(to: request) { EventFrame.text(name, event) }
        }
    }

    private func send(to request: StreamRequest, _ text: () -> WebSocketFrame) {
        guard let connections = state.withLock({ $0.groups[request]?.connections }) else { return }
        let frame = text()
        for connection in connections { connection.send(frame) }
    }

    private func send(state frame: WebSocketFrame, to request: StreamRequest) {
        state.withLock { state in
            state.groups[request]?.state = frame
            // Under the lock, which keeps the order between threads; sending only queues.
            for connection in state.groups[request]?.connections ?? [] { connection.send(frame) }
        }
    }
}
