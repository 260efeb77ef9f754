import Synchronization

/// One subscription on a connection of its own, which ends with it.
final class SingleStream: Sendable {
    private enum State {
        case new
        case running(cancel: @Sendable () -> Void)
        case closed
    }

    let outlet: Outlet
    private let streams: OpenStreams
    /// Which one it is of these.
    private let number: Int
    private let state = Mutex(State.new)

    init(_ transport: any FrameTransport, _ name: OpenStreams.Transport, _ hub: StreamHub) {
        outlet = Outlet(transport, memory: hub.waiting, hasOneLane: true)
        streams = hub.streams
        number = streams.add(outlet, name)
    }

    /// Begins the subscription.
    func start(_ request: StreamRequest, _ options: StreamOptions, on hub: StreamHub) {
        let cancel = hub.subscribe(outlet.open(id: nil, options: options, wanted: request), to: request)
        let isOver = state.withLock { state in
            if case .closed = state { return true }
            state = .running(cancel: cancel)
            return false
        }
        if isOver { cancel() }
    }

    /// Ends the subscription: the connection is gone.
    func close() {
        let last = state.withLock { state in
            defer { state = .closed }
            return state
        }
        if case .running(let cancel) = last { cancel() }
        outlet.close()
        streams.remove(number)
    }
}
