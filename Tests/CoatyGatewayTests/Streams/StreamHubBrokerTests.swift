import Coaty
import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import CoatyGateway
@testable import CoatyTestSupport

/// What the broker's word does to those who observe, at one that answers when the test says so.
@Suite(.closesOutlets) struct StreamHubBrokerTests {
    /// A broker that lets subscriptions to a topic `t/…` wait for the test's answer, and grants all others.
    private final class HesitantBinding: TopicNamingBinding {
        private struct State {
            var link: RecordedSession?
            var open: [(filter: String, ticket: UInt64)] = []
            var asked = 0
        }

        private let state = Mutex(State())
        private let queue = DispatchQueue(label: "hesitant")

        func join(_ session: BindingSession) {
            let link = RecordedSession(session)
            state.withLock { $0.link = link }
            queue.async { link.opened() }
        }

        func wake() { queue.async { self.carryOut() } }

        func leave() async {
            await withCheckedContinuation { continuation in
                queue.async {
                    self.carryOut()
                    self.state.withLock(\.link)?.closed()
                    continuation.resume()
                }
            }
        }

        private func carryOut() {
            guard let link = state.withLock(\.link) else { return }
            while let operation = link.nextOperation() {
                switch operation {
                case .subscribe(let filters, let ticket):
                    if let filter = filters.first(where: { $0.hasPrefix("t/") }) {
                        state.withLock { state in
                            state.open.append((filter, ticket))
                            state.asked += 1
                        }
                    } else {
                        link.subscribed(ticket)
                    }
                case .publish: link.publicationSent()
                case .unsubscribe, .disconnect: break
                }
            }
        }

        /// How often it was asked for what it hesitates about.
        var asked: Int { state.withLock(\.asked) }

        /// Answers all that waits.
        func answer(refusing isRefused: Bool) {
            queue.sync {
                let (link, open) = state.withLock { state in
                    defer { state.open = [] }
                    return (state.link, state.open)
                }
                for (filter, ticket) in open { link?.subscribed(ticket, refused: isRefused ? [filter] : []) }
            }
        }

        /// Sends a message, as brokers may before their answer.
        func send(_ topic: String, _ payload: String) {
            queue.sync { state.withLock(\.link)?.received(topic: topic, payload: Array(payload.utf8)) }
        }
    }

    private let binding = HesitantBinding()
    private let manager: CommunicationManager
    private let transport = SteeredTransport()
    private let outlet: Outlet
    private let hub: StreamHub
    private static let request = StreamRequest.raw(WireName("t/1"))

    init() async throws {
        let options = CommunicationOptions { [binding] _ in binding }
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        outlet = Outlet(transport)
        let objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        hub = await StreamHub(manager, objects, options, resumeWindow: .seconds(3600))
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
    }

    /// The ops that were told of an id.
    private func told(_ id: String) throws -> [String] {
        try transport.frames.map { try Payload(Array($0.utf8)).json }
            .filter { $0["id"]?.string == id }.compactMap { $0["op"]?.string }
    }

    private func asked(_ count: Int) async throws {
        try await untilTrue("the broker is asked \(count) times") { binding.asked == count }
    }

    @Test func whoComesAfterARefusalAsksAnew() async throws {
        let ends = ["a", "b"].map { hub.subscribe(outlet.open(id: $0), to: Self.request) }
        try await asked(1)
        #expect(transport.frames.isEmpty)
        binding.answer(refusing: true)
        try await untilTrue("both are refused") { try told("a") == ["error"] && told("b") == ["error"] }
        let end = hub.subscribe(outlet.open(id: "c"), to: Self.request)
        try await asked(2)
        // Those who were refused take nothing along when they go.
        for end in ends { end() }
        binding.answer(refusing: false)
        try await untilTrue("it is granted") { try told("c") == ["ok"] }
        binding.send("t/1", "x")
        try await untilTrue("the event comes") { try told("c") == ["ok", "event"] }
        #expect(try told("a") == ["error"])
        end()
        await manager.stop()
    }

    /// What comes before the broker's answer is told behind the ok, and not before.
    @Test func whatComesBeforeTheAnswerIsToldBehindIt() async throws {
        let end = hub.subscribe(outlet.open(id: "a"), to: Self.request)
        try await asked(1)
        binding.send("t/1", "x")
        #expect(transport.frames.isEmpty)
        binding.answer(refusing: false)
        try await untilTrue("the event comes") { try told("a") == ["ok", "event"] }
        end()
        await manager.stop()
    }

    @Test func whoGoesBeforeTheAnswerIsToldNothing() async throws {
        let lane = outlet.open(id: "a")
        let end = hub.subscribe(lane, to: Self.request)
        let other = hub.subscribe(outlet.open(id: "b"), to: Self.request)
        try await asked(1)
        outlet.close(lane)
        end()
        binding.send("t/1", "x")
        binding.answer(refusing: false)
        try await untilTrue("the other one begins") { try told("b") == ["ok", "event"] }
        #expect(try told("a").isEmpty)
        other()
        await manager.stop()
    }
}
