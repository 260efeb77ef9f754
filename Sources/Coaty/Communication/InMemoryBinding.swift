import DequeModule
import Dispatch
import Synchronization

/// A broker in memory, for tests and for agents that share a process.
///
/// It delivers like a real broker: asynchronously, in order, and to the publisher too. Raw topics and IO routes are
/// plain names without wildcards.
public final class InMemoryBroker: Sendable {
    fileprivate struct Client {
        let session: BindingSession
        var selectors: Set<EventSelector> = []
    }

    fileprivate struct State {
        var isAvailable = true
        var members: [ObjectIdentifier: BindingSession] = [:]
        var clients: [ObjectIdentifier: Client] = [:]
        var published = Deque<Publication>()
        var publishedBytes = 0
    }

    /// Maximum number of kept publications, and of their bytes.
    public static let maximumPublished = (count: 10_000, bytes: 64 << 20)

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "coaty.in-memory-broker")

    /// Creates a broker that accepts connections.
    public init() {}

    /// Closes all connections and refuses new ones, or accepts them again.
    public func setAvailable(_ isAvailable: Bool) {
        queue.async { [self] in
            let (connected, waiting) = state.withLock { state in
                state.isAvailable = isAvailable
                defer { if !isAvailable { state.clients.removeAll() } }
                // Connected clients stay connected.
                return (state.clients.values.map(\.session), state.members.filter { state.clients[$0.key] == nil })
            }
            if isAvailable {
                for (id, session) in waiting { connect(id, session) }
            } else {
                let error = ConnectionError(.closed, "the broker is not available")
                for session in connected { session.lost(error) }
            }
        }
    }

    /// The latest publications, in order, as many as ``maximumPublished``.
    public var published: [Publication] { state.withLock { Array($0.published) } }

    /// Publishes like another client.
    public func publish(_ publication: Publication) {
        queue.async { [self] in deliver(publication) }
    }

    fileprivate func join(_ id: ObjectIdentifier, _ session: BindingSession) {
        queue.async { [self] in
            let isAvailable = state.withLock { state in
                state.members[id] = session
                return state.isAvailable
            }
            if isAvailable { connect(id, session) }
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
                client?.session.lost(nil)
                continuation.resume()
            }
        }
    }

    private func connect(_ id: ObjectIdentifier, _ session: BindingSession) {
        state.withLock { $0.clients[id] = Client(session: session) }
        session.connected()
    }

    private func carryOut(_ id: ObjectIdentifier) {
        guard let session = state.withLock({ $0.clients[id]?.session }) else { return }
        while let operation = session.nextOperation() {
            switch operation {
            case .subscribe(let requests):
                state.withLock { $0.clients[id]?.selectors.formUnion(requests.map(\.selector)) }
                for request in requests { session.answer(request, isGranted: true) }
            case .unsubscribe(let selector):
                _ = state.withLock { $0.clients[id]?.selectors.remove(selector) }
            case .publish(let publication):
                session.publicationsWritten()
                session.publicationsRead(1)
                deliver(publication)
            case .disconnect:
                return
            }
        }
    }

    private func deliver(_ publication: Publication) {
        let receivers = state.withLock { state in
            state.keep(publication)
            return state.clients.values.compactMap { client in
                client.message(of: publication).map { (client.session, $0) }
            }
        }
        for (session, message) in receivers { session.received(message) }
    }
}

extension InMemoryBroker.State {
    fileprivate mutating func keep(_ publication: Publication) {
        var publication = publication
        // The objects of the publisher are released when it is written.
        (publication.holding, publication.keeping) = (nil, nil)
        published.append(publication)
        publishedBytes += publication.size
        let maximum = InMemoryBroker.maximumPublished
        while published.count > maximum.count || publishedBytes > maximum.bytes, let oldest = published.popFirst() {
            publishedBytes -= oldest.size
        }
    }
}

extension InMemoryBroker.Client {
    /// Returns a publication as the client receives it; nil if the client has not subscribed to it.
    fileprivate func message(of publication: Publication) -> InboundMessage? {
        switch publication.destination {
        case .event(let address):
            guard session.observesAllNamespaces || WireName(address.namespace) == WireName(session.namespace),
                selectors.contains(EventSelector(address)) || observesTraffic(address.eventType)
            else { return nil }
            return InboundMessage(.event(address), payload: publication.payload, label: "\(address.eventType)")
        case .ioRoute(let name), .raw(let name, _):
            let matching = [EventSelector.raw(WireName(name)), .ioRoute(WireName(name))].filter(selectors.contains)
            let sourceId = InMemoryBinding.sourceId(ofRoute: name)
            if let sourceId, observesTraffic(.ioValue) {
                let address = EventAddress(.ioValue, namespace: session.namespace, sourceId: sourceId)
                return InboundMessage(.event(address), payload: publication.payload, label: name)
            }
            guard !matching.isEmpty else { return nil }
            return InboundMessage(
                .raw(topic: name, selectors: matching, sourceId: sourceId),
                payload: publication.payload,
                label: name
            )
        }
    }

    private func observesTraffic(_ eventType: CommunicationEventType) -> Bool {
        selectors.contains { if case .traffic(let types) = $0 { types.contains(eventType) } else { false } }
    }
}

/// Binds an agent to an ``InMemoryBroker``.
public final class InMemoryBinding: Binding {
    private static let routePrefix = "coaty:io:"

    private let broker: InMemoryBroker

    /// Creates the binding of one agent.
    public init(broker: InMemoryBroker) {
        self.broker = broker
    }

    /// Connects as soon as the broker is available.
    public func join(_ session: BindingSession) { broker.join(ObjectIdentifier(self), session) }

    /// Makes the broker take the queued operations.
    public func wake() { broker.wake(ObjectIdentifier(self)) }

    /// Disconnects.
    public func leave() async { await broker.leave(ObjectIdentifier(self)) }

    /// Returns a name that contains the source's id.
    public func ioRoute(ofSource sourceId: CoatyUUID, namespace: String) -> String {
        Self.routePrefix + sourceId.string
    }

    /// Returns whether the route is not empty.
    public func isIoRoute(_ route: String) -> Bool { !route.isEmpty }

    /// Returns whether the topic is not empty and not an IO route.
    public func isPublishable(rawTopic: String) -> Bool { !rawTopic.isEmpty && Self.sourceId(ofRoute: rawTopic) == nil }

    /// Returns whether the filter is not empty.
    public func isObservable(rawTopicFilter: String) -> Bool { !rawTopicFilter.isEmpty }

    fileprivate static func sourceId(ofRoute route: String) -> CoatyUUID? {
        guard route.utf8.starts(with: routePrefix.utf8) else { return nil }
        return CoatyUUID(wire: String(decoding: route.utf8.dropFirst(routePrefix.utf8.count), as: UTF8.self))
    }
}
