import Dispatch
import Synchronization

/// A broker in memory, for tests and for agents that share a process.
///
/// It delivers as MQTT does: asynchronously, in order, to the publisher too.
public final class InMemoryBroker: Sendable {
    private struct Client {
        let link: Link
        var filters: Set<TopicFilter> = []
    }

    private struct State {
        var isAvailable = true
        var members: [ObjectIdentifier: Link] = [:]
        var clients: [ObjectIdentifier: Client] = [:]
        var published: [Publication] = []
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "coaty.in-memory-broker")

    /// Creates a broker that accepts connections.
    public init() {}

    /// Cuts all connections off and refuses new ones, or accepts them again.
    public func setAvailable(_ isAvailable: Bool) {
        queue.async { [self] in
            let (connected, waiting) = state.withLock { state in
                state.isAvailable = isAvailable
                defer { if !isAvailable { state.clients.removeAll() } }
                return (state.clients.values.map(\.link), state.members)
            }
            if isAvailable {
                for (id, link) in waiting { connect(id, link) }
            } else {
                for link in connected { link.closed() }
            }
        }
    }

    /// Everything that was published, in order.
    public var published: [(topic: String, payload: [UInt8])] {
        state.withLock { $0.published.map { ($0.topic, $0.payload) } }
    }

    /// Publishes a message as some other client would.
    public func publish(topic: String, payload: [UInt8]) {
        queue.async { [self] in deliver(Publication(topic: topic, payload: payload)) }
    }

    fileprivate func join(_ id: ObjectIdentifier, _ link: Link) {
        queue.async { [self] in
            let isAvailable = state.withLock { state in
                state.members[id] = link
                return state.isAvailable
            }
            if isAvailable { connect(id, link) }
        }
    }

    fileprivate func wake(_ id: ObjectIdentifier) {
        queue.async { [self] in carryOut(id) }
    }

    fileprivate func leave(_ id: ObjectIdentifier) async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                carryOut(id)
                let client = state.withLock { state in
                    state.members[id] = nil
                    return state.clients.removeValue(forKey: id)
                }
                client?.link.closed()
                continuation.resume()
            }
        }
    }

    private func connect(_ id: ObjectIdentifier, _ link: Link) {
        state.withLock { $0.clients[id] = Client(link: link) }
        link.opened()
    }

    private func carryOut(_ id: ObjectIdentifier) {
        guard let link = state.withLock({ $0.clients[id]?.link }) else { return }
        while let operation = link.nextOperation() {
            switch operation {
            case .subscribe(let filters, let ticket):
                state.withLock { $0.clients[id]?.filters.formUnion(filters.map(TopicFilter.init)) }
                link.subscribed(ticket)
            case .unsubscribe(let filter):
                _ = state.withLock { $0.clients[id]?.filters.remove(TopicFilter(filter)) }
            case .publish(let publication):
                link.publicationSent()
                deliver(publication)
            case .disconnect:
                return
            }
        }
    }

    private func deliver(_ publication: Publication) {
        let receivers = state.withLock { state in
            state.published.append(publication)
            return state.clients.values.filter { client in
                client.filters.contains { $0.matches(publication.topic) }
            }.map(\.link)
        }
        for link in receivers { link.received(topic: publication.topic, payload: publication.payload) }
    }
}

/// Binds an agent to an ``InMemoryBroker``.
public final class InMemoryBinding: Binding {
    private let broker: InMemoryBroker

    /// Creates the binding of one agent.
    public init(broker: InMemoryBroker) {
        self.broker = broker
    }

    /// Connects as soon as the broker is available.
    public func join(_ link: Link) { broker.join(ObjectIdentifier(self), link) }

    /// Lets the broker take what waits.
    public func wake() { broker.wake(ObjectIdentifier(self)) }

    /// Disconnects.
    public func leave() async { await broker.leave(ObjectIdentifier(self)) }
}
