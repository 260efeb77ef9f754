import Access
import Base
import Feeds
import Gate

/// A connection with a single activity. Both end together.
final class SingleStream: Sendable {
    let outbound: OutboundQueue
    let client: GateClient
    private let connections: ClientConnections
    /// Number of the connection in `connections`.
    private let number: Int

    init(
        _ transport: any FrameTransport,
        _ name: ClientConnections.Transport,
        _ client: GateClient,
        _ principal: Principal,
        _ services: ClientServices
    ) {
        outbound = OutboundQueue(
            transport,
            account: services.accounts.account(of: principal),
            workers: services.workers,
            hasOneSubscription: true
        )
        self.client = client
        connections = services.connections
        number = connections.add(outbound, name, from: principal.address)
        client.attach { [weak outbound] in outbound?.limit(to: $0) }
    }

    /// Starts the subscription of the stream.
    func start(_ activity: SubscriptionActivity, _ options: SubscriptionOptions) {
        activity.start(options, on: outbound)
    }

    /// Starts the request whose responses the stream carries.
    func start(_ activity: RequestActivity) {
        let slot = outbound.open(id: nil, outcome: activity.outcome, isHeld: false)
        slot.attach(activity)
        do {
            try activity.start(into: ResponseQueue(subscription: slot, outbound: outbound))
        } catch {
            outbound.refuse(slot, Problems.of(error))
        }
    }

    /// Ends the activity after its connection has closed.
    func close() {
        outbound.close()
        connections.remove(number)
        client.leave()
    }
}
