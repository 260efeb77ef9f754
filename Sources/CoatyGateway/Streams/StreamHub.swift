import Coaty
import Synchronization
import WebSocketServer

/// Brings events to stream connections: one subscription, and one frame an event, for all who want the same.
final class StreamHub: Sendable {
    private struct Group {
        var subscription: Subscription?
        var connections: [WebSocketConnection] = []
    }

    private struct State {
        var groups: [StreamRequest: Group] = [:]
        var requests: [WebSocketConnection.ID: StreamRequest] = [:]
    }

    private let manager: CommunicationManager
    private let state = Mutex(State())

    init(manager: CommunicationManager) {
        self.manager = manager
    }

    func add(_ connection: WebSocketConnection, to request: StreamRequest) {
        // Under the lock, so that a group's first and last connection can't meet in between: subscribing only queues.
        state.withLock { state in
            state.requests[connection.id] = request
            state.groups[request, default: Group()].connections.append(connection)
            if state.groups[request]?.subscription == nil {
                state.groups[request]?.subscription = subscribe(request)
            }
        }
    }

    func remove(_ connection: WebSocketConnection) {
        let subscription = state.withLock { state -> Subscription? in
            guard let request = state.requests.removeValue(forKey: connection.id) else { return nil }
            state.groups[request]?.connections.removeAll { $0.id == connection.id }
            guard state.groups[request]?.connections.isEmpty ?? false else { return nil }
            return state.groups.removeValue(forKey: request)?.subscription
        }
        subscription?.cancel()
    }

    private func subscribe(_ request: StreamRequest) -> Subscription? {
        switch request {
        case .advertisedCoreType(let coreType):
            subscribe(.advertise(withCoreType: coreType), "advertise", request)
        case .advertisedObjectType(let objectType):
            (try? .advertise(withObjectType: objectType.text)).map { subscribe($0, "advertise", request) }
        case .deadvertise:
            subscribe(.deadvertise, "deadvertise", request)
        case .channel(let channelId):
            (try? .channel(channelId.text)).map { subscribe($0, "channel", request) }
        }
    }

    private func subscribe<Event>(
        _ observation: EventObservation<Event>,
        _ name: String,
        _ request: StreamRequest
    ) -> Subscription {
        manager.subscribe(observation) { [weak self] event in
            guard let connections = self?.state.withLock({ $0.groups[request]?.connections }) else { return }
            let frame = EventFrame.text(name, event)
            for connection in connections { connection.send(frame) }
        }
    }
}
