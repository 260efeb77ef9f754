import Access
import HTTPServer
import Synchronization

/// Connection with a single subscription. Both end together.
final class SingleStream: Sendable {
    private enum State {
        case new
        case running(cancel: @Sendable () -> Void)
        case closed
    }

    let outbound: OutboundQueue
    let principal: Principal
    private let services: ClientServices
    /// Number of the connection in the services' `connections`.
    private let connectionNumber: Int
    private let state = Mutex(State.new)

    init(
        _ transport: any FrameTransport,
        _ name: ClientConnections.Transport,
        _ principal: Principal,
        _ services: ClientServices
    ) {
        outbound = OutboundQueue(
            transport,
            account: services.accounts.account(of: principal),
            workers: services.workers,
            hasOneSubscription: true
        )
        self.principal = principal
        self.services = services
        connectionNumber = services.connections.add(outbound, name, from: principal.address)
    }

    /// Starts the subscription. If the connection closes meanwhile, the subscription is cancelled.
    func start(_ permitted: PermittedObservation, _ options: SubscriptionOptions) {
        let subscription = outbound.open(
            id: nil,
            options: options,
            wanted: permitted.observation,
            view: permitted.view
        )
        let cancel = permitted.start(subscription)
        let ignore = services.gate.access.observe(principal) { [weak self] in self?.judge(subscription) }
        let end: @Sendable () -> Void = {
            ignore()
            cancel()
        }
        let isOver = state.withLock { state in
            if case .closed = state { return true }
            state = .running(cancel: end)
            return false
        }
        // The policy may have changed between the decision and the start of the observation.
        if isOver { end() } else { judge(subscription) }
    }

    /// Checks the subscription against the current policy.
    private func judge(_ subscription: ClientSubscription) {
        outbound.limit(to: services.outboundRate(of: principal))
        guard let observation = subscription.wanted else { return }
        services.gate.judge(subscription, Observe(observation: observation), outbound) { [principal] in principal }
    }

    /// Ends the subscription after its connection has closed.
    func close() {
        let previous = state.withLock { state in
            defer { state = .closed }
            return state
        }
        if case .running(let cancel) = previous { cancel() }
        outbound.close()
        services.connections.remove(connectionNumber)
    }
}
