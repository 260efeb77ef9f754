import Synchronization

/// One subscription on a connection of its own, which ends with it.
final class SingleStream: Sendable {
    private enum State {
        case new
        case running(cancel: @Sendable () -> Void)
        case closed
    }

    let outlet: Outlet
    private let state = Mutex(State.new)

    init(_ transport: any FrameTransport, _ hub: StreamHub) {
        outlet = Outlet(transport, memory: hub.waiting, hasOneLane: true)
    }

    /// Begins the subscription.
    func start(_ request: StreamRequest, _ options: StreamOptions, on hub: StreamHub) {
        let cancel = hub.subscribe(outlet.open(id: nil, options: options, kind: request.objectKind), to: request)
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
    }
}
