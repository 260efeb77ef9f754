import Coaty
import Synchronization
import TestSupport
import Testing

@testable import CoatyGateway
@testable import CoatyTestSupport

/// How many links to the broker clients can make the gateway have.
@Suite(.closesOutlets) struct TrafficLinksTests {
    /// Makes bindings whose threads are held back: they keep their links until the test says so.
    private final class Bindings: Sendable {
        struct NoDescriptor: Error {}

        private struct Held: TopicNamingBinding {
            let bindings: Bindings

            func join(_ session: BindingSession) { bindings.links.withLock { $0.append(session) } }
            func wake() {}
            func leave() async {}
        }

        private let links = Mutex<[BindingSession]>([])
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

        /// How many are there.
        var count: Int { links.withLock(\.count) }

        /// Lets go of all.
        func end() {
            let ended = links.withLock { links in
                defer { links = [] }
                return links
            }
            for link in ended { link.lost(nil) }
        }
    }

    private let bindings = Bindings()
    private let manager: CommunicationManager
    private let hub: StreamHub
    private let transport = SteeredTransport()
    private let outlet: Outlet

    init() async throws {
        let options = CommunicationOptions { [bindings] _ in try bindings.make() }
        // It is not started, and so offline: what is observed begins at once.
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        outlet = Outlet(transport)
        let objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        hub = await StreamHub(manager, objects, options, resumeWindow: .zero)
    }

    private static let choices = CommunicationEventType.allCases.map { StreamRequest.traffic([$0]) }

    private func told(_ id: String) throws -> [Told.Content] {
        try transport.told.filter { $0.id == id }.map(\.content)
    }

    @Test func whoComesAndGoesFindsABound() async throws {
        for choice in Self.choices.prefix(TrafficLinks.maximum) {
            #expect(hub.refusal(of: choice) == nil)
            hub.subscribe(outlet.open(id: "a"), to: choice)()
        }
        #expect(bindings.count == TrafficLinks.maximum)
        let last = try #require(Self.choices.last)
        #expect(hub.refusal(of: last)?.status == 503)
        // Who has asked before is refused all the same.
        hub.subscribe(outlet.open(id: "b"), to: last)()
        try await untilTrue("it is refused") { try told("b") == [.error] }
        #expect(bindings.count == TrafficLinks.maximum)
        bindings.end()
        try await untilTrue("there is room again") { hub.refusal(of: last) == nil }
        let end = hub.subscribe(outlet.open(id: "c"), to: last)
        try await untilTrue("it begins") { try told("c") == [.gap(nil)] || told("c") == [.ok, .gap(nil)] }
        end()
    }

    @Test func whoComesAtTheSameTimeFindsABound() async throws {
        let ends = await withTaskGroup { group in
            for choice in Self.choices {
                group.addTask { [hub, outlet] in hub.subscribe(outlet.open(id: "a"), to: choice) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bindings.count == StreamHub.maximumLinks)
        let refused = Self.choices.count - StreamHub.maximumLinks
        try await untilTrue("the others are refused") { try told("a").count { $0 == .error } == refused }
        for end in ends { end() }
    }

    @Test func aLinkThatCantBeMadeIsAnErrorOnce() async throws {
        bindings.failOnce()
        let choice = try #require(Self.choices.first)
        let end = hub.subscribe(outlet.open(id: "a"), to: choice)
        try await untilTrue("it is refused") { try told("a") == [.error] }
        #expect(transport.frames.contains { $0.contains(#""status":503"#) })
        let endAgain = hub.subscribe(outlet.open(id: "b"), to: choice)
        try await untilTrue("it begins") { try told("b").last == .gap(nil) }
        end()
        #expect(bindings.count == 1)
        endAgain()
    }
}
