import Dispatch
import Synchronization

@testable import Coaty
@testable import CoatyMQTT

/// An in-memory MQTT broker. Its agents use the topics, filters and packets of the MQTT binding.
final class TopicBroker: Sendable {
    struct Message: Sendable {
        let topic: String
        let payload: [UInt8]
    }

    fileprivate struct Client {
        let session: BindingSession
        var subscriptions: MQTTSubscriptions
        var filters: Set<String> = []
        var lastPacket: Int32 = 0
    }

    private struct State {
        var isAvailable = true
        var members: [ObjectIdentifier: BindingSession] = [:]
        var clients: [ObjectIdentifier: Client] = [:]
        var published: [Message] = []
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "topic-broker")

    /// Closes all connections and refuses new ones, or accepts them again.
    func setAvailable(_ isAvailable: Bool) {
        queue.async { [self] in
            let (connected, waiting) = state.withLock { state in
                state.isAvailable = isAvailable
                defer { if !isAvailable { state.clients.removeAll() } }
                return (state.clients.values.map(\.session), state.members.filter { state.clients[$0.key] == nil })
            }
            if isAvailable {
                for (id, session) in waiting { connect(id, session) }
            } else {
                for session in connected { session.lost(nil) }
            }
        }
    }

    /// Reports to all clients that messages may have been dropped.
    func reportGap() {
        queue.async { [self] in
            for session in state.withLock({ $0.clients.values.map(\.session) }) { session.mayHaveMissed() }
        }
    }

    /// Everything that was published, in order.
    var published: [Message] { state.withLock(\.published) }

    /// Publishes a message in the name of another client.
    func publish(topic: String, payload: [UInt8]) {
        queue.async { [self] in deliver(Message(topic: topic, payload: payload)) }
    }

    func waitForMessages(_ count: Int) async throws -> [Message] {
        try await waitForMessages { $0.count >= count }
    }

    func waitForMessages(_ condition: @escaping @Sendable ([Message]) -> Bool) async throws -> [Message] {
        try await withPatience { [self] in
            while true {
                let published = published
                if condition(published) { return published }
                try await Task.sleep(for: .milliseconds(1))
            }
        }
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
        var subscriptions = MQTTSubscriptions(topics: MQTTTopics(session, .plain), filtersPerPacket: 8)
        subscriptions.connected()
        state.withLock { $0.clients[id] = Client(session: session, subscriptions: subscriptions) }
        session.connected()
    }

    private func carryOut(_ id: ObjectIdentifier) {
        guard let session = state.withLock({ $0.clients[id]?.session }) else { return }
        while let operation = session.nextOperation() {
            switch operation {
            case .subscribe(let requests):
                report(state.withLock { $0.clients[id]?.subscribe(requests) ?? [] }, to: session)
            case .unsubscribe(let selector):
                report(state.withLock { $0.clients[id]?.unsubscribe(selector) ?? [] }, to: session)
            case .publish(let publication):
                session.publicationsWritten()
                deliver(Message(publication))
            case .disconnect:
                return
            }
        }
    }

    private func report(_ answers: [MQTTSubscriptions.Answer], to session: BindingSession) {
        for answer in answers { session.answer(answer.request, isGranted: answer.isGranted) }
    }

    private func deliver(_ message: Message) {
        let receivers = state.withLock { state in
            state.published.append(message)
            return state.clients.values.filter { client in
                client.filters.contains { filter in
                    MQTTTopicFilter(filter)?.matches(message.topic) ?? filter.utf8.elementsEqual(message.topic.utf8)
                }
            }
        }
        for client in receivers { client.subscriptions.receive(message.topic, message.payload, for: client.session) }
    }
}

extension TopicBroker.Client {
    mutating func subscribe(_ requests: [SubscriptionRequest]) -> [MQTTSubscriptions.Answer] {
        var answers = subscriptions.add(requests)
        while let packet = subscriptions.nextPacket(now: .now) {
            lastPacket += 1
            filters.formUnion(packet.filters)
            _ = subscriptions.sent(lastPacket, keys: packet.keys, now: .now)
            answers += subscriptions.acknowledged(lastPacket, isGranted: packet.filters.map { _ in true }, now: .now)
        }
        return answers
    }

    mutating func unsubscribe(_ selector: EventSelector) -> [MQTTSubscriptions.Answer] {
        let (commands, answers) = subscriptions.remove(selector)
        for case .unsubscribe(let forgotten) in commands { filters.subtract(forgotten) }
        return answers
    }
}

extension TopicBroker.Message {
    init(_ publication: Publication) {
        let topic =
            switch publication.destination {
            case .event(let address): MQTTTopic.topic(of: address)
            case .ioRoute(let name), .raw(let name, _): name
            }
        self.init(topic: topic, payload: publication.payload)
    }
}

/// A binding of an agent to a ``TopicBroker``.
final class TopicBinding: TopicNamingBinding {
    private let broker: TopicBroker

    init(broker: TopicBroker) { self.broker = broker }

    func join(_ session: BindingSession) { broker.join(ObjectIdentifier(self), session) }
    func wake() { broker.wake(ObjectIdentifier(self)) }
    func leave() async { await broker.leave(ObjectIdentifier(self)) }
}

/// A binding that uses the names of MQTT.
protocol TopicNamingBinding: Binding {}

extension TopicNamingBinding {
    func ioRoute(ofSource id: CoatyUUID, namespace: String) -> String {
        MQTTTopic.topic(of: EventAddress(.ioValue, namespace: namespace, sourceId: id))
    }

    func isIoRoute(_ route: String) -> Bool { MQTTTopic.isIoRoute(route) }
    func isPublishable(rawTopic: String) -> Bool { MQTTTopic.isPublishable(rawTopic) }
    func isObservable(rawTopicFilter: String) -> Bool { MQTTTopic.isObservable(rawTopicFilter) }
}

extension EventAddress {
    /// Parses a topic as delivered by a broker that does not change topics.
    init?(topic: String) {
        guard let address = MQTTTopic.address(of: topic, namespace: "-", dialect: .plain) else { return nil }
        self = address
    }

    /// The name as it appears in topics: an object type has a colon in front.
    var wireName: String? { name.map { ($0.isObjectType ? ":" : "") + $0.text } }
}
