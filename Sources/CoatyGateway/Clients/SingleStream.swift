import Synchronization

/// Connection with a single subscription. Both end together.
final class SingleStream: Sendable {
    private enum State {
        case new
        case running(cancel: @Sendable () -> Void)
        case closed
    }

    let outbound: OutboundQueue
    private let connections: ClientConnections
    /// Number of the connection in `connections`.
    private let connectionNumber: Int
    private let state = Mutex(State.new)

    init(_ transport: any FrameTransport, _ name: ClientConnections.Transport, _ hub: FeedHub) {
        outbound = OutboundQueue(transport, memory: hub.queueMemory, hasOneSubscription: true)
        connections = hub.streams
        connectionNumber = connections.add(outbound, name)
    }

    /// Starts the subscription. If the connection closes meanwhile, the subscription is cancelled.
    func start(_ observation: Observation, _ options: SubscriptionOptions, on hub: FeedHub) {
        let cancel = hub.subscribe(outbound.open(id: nil, options: options, wanted: observation), to: observation)
        let isOver = state.withLock { state in
            if case .closed = state { return true }
            state = .running(cancel: cancel)
            return false
        }
        if isOver { cancel() }
    }

    /// Ends the subscription after its connection has closed.
    func close() {
        let previous = state.withLock { state in
            defer { state = .closed }
            return state
        }
        if case .running(let cancel) = previous { cancel() }
        outbound.close()
        connections.remove(connectionNumber)
    }
}
