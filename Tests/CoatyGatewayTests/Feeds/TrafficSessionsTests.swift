import Coaty
import Synchronization
import Testing
import TestSupport

@testable import Base
@testable import CoatyTestSupport
@testable import Feeds
@testable import Network

/// The limit on the broker sessions that clients can make the gateway open.
@Suite(.exclusive, .closesOutboundQueues) struct TrafficSessionsTests {
    /// Creates bindings that keep their sessions until the test ends them, as if their threads were blocked.
    private final class Bindings: Sendable {
        struct NoDescriptor: Error {}

        private struct Held: TopicNamingBinding {
            let bindings: Bindings

            func join(_ session: BindingSession) { bindings.sessions.withLock { $0.append(session) } }
            func wake() {}
            func leave() async {}
        }

        private let sessions = Mutex<[BindingSession]>([])
        private let failures = Mutex(0)

        func make() throws -> any Binding {
            let isFailure = failures.withLock { failures in
                defer { failures = max(0, failures - 1) }
                return failures > 0
            }
            if isFailure { throw NoDescriptor() }
            return Held(bindings: self)
        }

        func failOnce() { failures.withLock { $0 = 1 } }

        /// Number of open sessions.
        var count: Int { sessions.withLock(\.count) }

        /// Ends all sessions.
        func end() {
            let ended = sessions.withLock { sessions in
                defer { sessions = [] }
                return sessions
            }
            for session in ended { session.lost(nil) }
        }
    }

    private let bindings = Bindings()
    private let manager: CommunicationManager
    private let hub: FeedHub
    private let transport = SteeredTransport()
    private let outbound: OutboundQueue

    init() async throws {
        let options = CommunicationOptions { [bindings] _ in try bindings.make() }
        // The manager is not started, and therefore offline: subscriptions begin immediately.
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        outbound = OutboundQueue(transport)
        let objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        hub = await FeedHub(manager, objects, options, resumeWindow: .zero)
    }

    private static let choices = CommunicationEventType.allCases.map { Observation.traffic([$0]) }

    private func delivered(_ id: String) throws -> [DeliveredFrame.Content] {
        try transport.delivered.filter { $0.id == id }.map(\.content)
    }

    @Test func sessionsAreBoundedForSuccessiveSubscriptions() async throws {
        let maximum = Limits()[.brokerConnections].total + FeedHub.maximumUnusedTrafficFeeds
        for choice in Self.choices.prefix(maximum) {
            #expect(hub.refusal(of: choice) == nil)
            hub.subscribe(outbound.open(id: "a"), to: choice)()
        }
        #expect(bindings.count == maximum)
        let last = try #require(Self.choices.last)
        #expect(hub.refusal(of: last)?.status == 503)
        // A subscription that passed the check earlier is refused, too.
        hub.subscribe(outbound.open(id: "b"), to: last)()
        try await untilTrue("it is refused") { try delivered("b") == [.error] }
        #expect(bindings.count == maximum)
        bindings.end()
        try await untilTrue("there is room again") { hub.refusal(of: last) == nil }
        let end = hub.subscribe(outbound.open(id: "c"), to: last)
        try await untilTrue("it begins") { try delivered("c") == [.gap(nil)] || delivered("c") == [.ok, .gap(nil)] }
        end()
    }

    @Test func sessionsAreBoundedForConcurrentSubscriptions() async throws {
        let ends = await withTaskGroup { group in
            for choice in Self.choices {
                group.addTask { [hub, outbound] in hub.subscribe(outbound.open(id: "a"), to: choice) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bindings.count == Limits()[.brokerConnections].total)
        let refused = Self.choices.count - Limits()[.brokerConnections].total
        try await untilTrue("the others are refused") { try delivered("a").count { $0 == .error } == refused }
        for end in ends { end() }
    }

    @Test func failedSessionIsReportedOnce() async throws {
        bindings.failOnce()
        let choice = try #require(Self.choices.first)
        let end = hub.subscribe(outbound.open(id: "a"), to: choice)
        try await untilTrue("it is refused") { try delivered("a") == [.error] }
        #expect(transport.frames.contains { $0.contains(#""status":503"#) })
        let endAgain = hub.subscribe(outbound.open(id: "b"), to: choice)
        try await untilTrue("it begins") { try delivered("b").last == .gap(nil) }
        end()
        #expect(bindings.count == 1)
        endAgain()
    }
}
