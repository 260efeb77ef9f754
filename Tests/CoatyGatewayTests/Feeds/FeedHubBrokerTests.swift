import Coaty
import Dispatch
import Synchronization
import Testing
import TestSupport

@testable import CoatyTestSupport
@testable import Feeds
@testable import Network

/// Effects of the broker's reply on subscriptions. The test decides when the broker replies.
@Suite(.exclusive, .closesOutboundQueues) struct FeedHubBrokerTests {
    /// A broker that delays its reply to subscriptions of topics `t/…` until the test sends it, and grants all others.
    private final class DelayedBinding: TopicNamingBinding {
        private struct State {
            var session: RecordedSession?
            var pending: [(filter: String, ticket: UInt64)] = []
            var asked = 0
        }

        private let state = Mutex(State())
        private let queue = DispatchQueue(label: "hesitant")

        func join(_ bindingSession: BindingSession) {
            let session = RecordedSession(bindingSession)
            state.withLock { $0.session = session }
            queue.async { session.opened() }
        }

        func wake() { queue.async { self.carryOut() } }

        func leave() async {
            await withCheckedContinuation { continuation in
                queue.async {
                    self.carryOut()
                    self.state.withLock(\.session)?.closed()
                    continuation.resume()
                }
            }
        }

        private func carryOut() {
            guard let session = state.withLock(\.session) else { return }
            while let operation = session.nextOperation() {
                switch operation {
                case .subscribe(let filters, let ticket):
                    if let filter = filters.first(where: { $0.hasPrefix("t/") }) {
                        state.withLock { state in
                            state.pending.append((filter, ticket))
                            state.asked += 1
                        }
                    } else {
                        session.subscribed(ticket)
                    }
                case .publish: session.publicationSent()
                case .unsubscribe, .disconnect: break
                }
            }
        }

        /// Number of subscriptions whose reply was delayed.
        var asked: Int { state.withLock(\.asked) }

        /// Replies to all pending subscriptions.
        func answer(refusing isRefused: Bool) {
            queue.sync {
                let (session, pending) = state.withLock { state in
                    defer { state.pending = [] }
                    return (state.session, state.pending)
                }
                for (filter, ticket) in pending { session?.subscribed(ticket, refused: isRefused ? [filter] : []) }
            }
        }

        /// Delivers a message. Brokers may do this before they reply to the subscription.
        func send(_ topic: String, _ payload: String) {
            queue.sync { state.withLock(\.session)?.received(topic: topic, payload: Array(payload.utf8)) }
        }
    }

    private let binding = DelayedBinding()
    private let manager: CommunicationManager
    private let transport = SteeredTransport()
    private let outbound: OutboundQueue
    private let hub: FeedHub
    private static let request = Observation.raw(WireName("t/1"))

    init() async throws {
        // The first binding belongs to the gateway's main session, the next one to the session for raw events.
        let own = Recorder<any Binding>()
        let options = CommunicationOptions { [binding] _ in
            guard own.values.isEmpty else { return binding }
            own.append(TopicBinding(broker: TopicBroker()))
            return own.values[0]
        }
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        outbound = OutboundQueue(transport)
        let objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        hub = await FeedHub(manager, objects, options, resumeWindow: .seconds(3600))
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
    }

    /// Returns the ops of the frames delivered for an id.
    private func delivered(_ id: String) throws -> [String] {
        try transport.frames.map { try Payload(Array($0.utf8)).json }
            .filter { $0["id"]?.string == id }.compactMap { $0["op"]?.string }
    }

    private func asked(_ count: Int) async throws {
        try await untilTrue("the broker is asked \(count) times") { binding.asked == count }
    }

    @Test func subscriptionAfterRefusalAsksBrokerAgain() async throws {
        let ends = ["a", "b"].map { hub.subscribe(outbound.open(id: $0), to: Self.request) }
        try await asked(1)
        #expect(transport.frames.isEmpty)
        binding.answer(refusing: true)
        try await untilTrue("both are refused") { try delivered("a") == ["error"] && delivered("b") == ["error"] }
        let end = hub.subscribe(outbound.open(id: "c"), to: Self.request)
        try await asked(2)
        // Ending the refused subscriptions does not affect the new one.
        for end in ends { end() }
        binding.answer(refusing: false)
        try await untilTrue("it is granted") { try delivered("c") == ["ok"] }
        binding.send("t/1", "x")
        try await untilTrue("the event comes") { try delivered("c") == ["ok", "event"] }
        #expect(try delivered("a") == ["error"])
        end()
        await manager.stop()
    }

    @Test func eventsBeforeBrokerReplyAreDeliveredAfterOk() async throws {
        let end = hub.subscribe(outbound.open(id: "a"), to: Self.request)
        try await asked(1)
        binding.send("t/1", "x")
        #expect(transport.frames.isEmpty)
        binding.answer(refusing: false)
        try await untilTrue("the event comes") { try delivered("a") == ["ok", "event"] }
        end()
        await manager.stop()
    }

    @Test func subscriptionClosedBeforeBrokerReplyGetsNothing() async throws {
        let subscription = outbound.open(id: "a")
        let end = hub.subscribe(subscription, to: Self.request)
        let other = hub.subscribe(outbound.open(id: "b"), to: Self.request)
        try await asked(1)
        outbound.close(subscription)
        end()
        binding.send("t/1", "x")
        binding.answer(refusing: false)
        try await untilTrue("the other one begins") { try delivered("b") == ["ok", "event"] }
        #expect(try delivered("a").isEmpty)
        other()
        await manager.stop()
    }
}
