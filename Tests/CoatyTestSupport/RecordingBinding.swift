import Synchronization

@testable import Coaty
@testable import CoatyMQTT

/// A binding whose connection the test controls, with operations in topics.
final class RecordingBinding: TopicNamingBinding {
    private struct State {
        var link: RecordedSession?
        var wakes = 0
        var leftWith: [RecordedOperation] = []
    }

    private let state = Mutex(State())

    var link: RecordedSession? { state.withLock(\.link) }
    var wakes: Int { state.withLock(\.wakes) }
    var leftWith: [RecordedOperation] { state.withLock(\.leftWith) }

    func join(_ session: BindingSession) {
        let link = RecordedSession(session)
        state.withLock { $0.link = link }
    }

    func wake() { state.withLock { $0.wakes += 1 } }

    func leave() async {
        let link = state.withLock { $0.link.take() }
        while let operation = link?.nextOperation() { state.withLock { $0.leftWith.append(operation) } }
        link?.closed()
    }
}

/// An operation with topics.
enum RecordedOperation {
    case subscribe([String], ticket: UInt64)
    case unsubscribe(String)
    case publish(TopicBroker.Message)
    case disconnect
}

/// A session that the test controls, with operations in topics. The ticket of a packet is that of its first request.
final class RecordedSession: Sendable {
    let session: BindingSession
    private let topics: MQTTTopics
    private let state: Mutex<(subscriptions: MQTTSubscriptions, requests: [UInt64: [SubscriptionRequest]])>

    init(_ session: BindingSession) {
        self.session = session
        topics = MQTTTopics(session, .plain)
        state = Mutex((MQTTSubscriptions(topics: topics, filtersPerPacket: 8), [:]))
    }

    var clientId: String { session.clientId }
    var will: TopicBroker.Message? { session.farewell.map(TopicBroker.Message.init) }

    func opened() { session.connected() }

    func closed() {
        state.withLock { state in
            _ = state.subscriptions.lost(isWriting: false, isLeaving: true, now: .now)
        }
        session.lost(nil)
    }

    func nextOperation() -> RecordedOperation? {
        guard let operation = session.nextOperation() else { return nil }
        switch operation {
        case .subscribe(let requests):
            let ticket = requests[0].ticket
            state.withLock { state in
                state.requests[ticket] = requests
                _ = state.subscriptions.add(requests)
            }
            return .subscribe(requests.flatMap { topics.filters(of: $0.selector) }, ticket: ticket)
        case .unsubscribe(let selector):
            _ = state.withLock { $0.subscriptions.remove(selector) }
            return .unsubscribe(topics.filters(of: selector)[0])
        case .publish(let publication): return .publish(TopicBroker.Message(publication))
        case .disconnect: return .disconnect
        }
    }

    /// Replies to the subscriptions of a packet.
    func subscribed(_ ticket: UInt64, refused: [String] = []) {
        let refused = Set(refused.map(WireName.init))
        for request in state.withLock({ $0.requests[ticket] }) ?? [] {
            let isRefused = topics.filters(of: request.selector).contains { refused.contains(WireName($0)) }
            session.answer(request, isGranted: !isRefused)
        }
    }

    func received(topic: String, payload: [UInt8]) {
        let subscriptions = state.withLock(\.subscriptions)
        subscriptions.receive(topic, payload, for: session)
    }

    func publicationSent() { session.publicationsWritten() }
    func publicationRefused() { session.publicationRefused() }
    func receivedTooLong() { session.dropped("a message that is too long", label: "") }

    /// Takes all pending operations, and returns the subscriptions.
    func takeSubscriptions() -> [(filters: [String], ticket: UInt64)] {
        var taken: [(filters: [String], ticket: UInt64)] = []
        while let operation = nextOperation() {
            switch operation {
            case .subscribe(let filters, let ticket): taken.append((filters, ticket))
            case .publish: publicationSent()
            case .unsubscribe, .disconnect: break
            }
        }
        return taken
    }

    /// Takes all pending operations, and grants all subscriptions.
    func settle() {
        for (_, ticket) in takeSubscriptions() { subscribed(ticket) }
    }
}
