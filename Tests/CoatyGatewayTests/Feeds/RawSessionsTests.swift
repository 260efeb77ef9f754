import Coaty
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import CoatyTestSupport
@testable import Feeds

@Suite(.exclusive) struct RawSessionsTests {
    private let broker = TopicBroker()
    private let manager: CommunicationManager
    private let sessions: RawSessions

    init() throws {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        let manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        sessions = RawSessions(maximum: 2) { try manager.openRawSession(messageCounts: $0) }
        self.manager = manager
    }

    private static let clients = (1...3).map { ClientKey.token("\($0)") }

    @Test func clientsAreDividedAmongSessions() async throws {
        let first = try (0..<3).map { _ in try sessions.place(for: Self.clients[0]) }
        let second = try sessions.place(for: Self.clients[1])
        #expect(Set(first.map { ObjectIdentifier($0.session) }).count == 1)
        #expect(second.session !== first[0].session)
        #expect(try sessions.place(for: Self.clients[2]).session === first[0].session)
        await sessions.stop()
    }

    @Test func aClientThatHasLeftMakesRoom() async throws {
        var first: RawSessions.Place? = try sessions.place(for: Self.clients[0])
        let session = try #require(first?.session)
        let second = try sessions.place(for: Self.clients[1])
        first = nil
        // The session stays open, and again has the fewest clients.
        #expect(try sessions.place(for: Self.clients[2]).session === session)
        withExtendedLifetime(second) {}
        await sessions.stop()
    }

    @Test func sessionsEndWithTheAgentAndAreOpenedAgain() async throws {
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
        let place = try sessions.place(for: Self.clients[0])
        let (statuses, ends) = (Recorder<SubscriptionStatus>(), Recorder<Bool>())
        let subscription = try place.session.subscribe(
            "a/+",
            onStatus: { statuses.append($0) },
            onEnd: { ends.append(true) },
            handler: { _ in }
        )
        try await untilTrue("it stands") { statuses.values == [.standing] }
        await manager.stop()
        try await untilTrue("it ends") { ends.values == [true] }
        #expect(place.session.hasEnded)
        manager.start()
        try await untilTrue("the gateway is online again") { manager.isOnline }
        #expect(try sessions.place(for: Self.clients[0]).session !== place.session)
        subscription.cancel()
        await manager.stop()
    }

    @Test func subscriptionWithoutBrokerIsOfflineAtOnce() async throws {
        broker.setAvailable(false)
        let statuses = Recorder<SubscriptionStatus>()
        let subscription = try sessions.place(for: Self.clients[0]).session.subscribe(
            "a",
            onStatus: { statuses.append($0) },
            onEnd: {},
            handler: { _ in }
        )
        #expect(statuses.values.first == .offline)
        subscription.cancel()
        await sessions.stop()
    }
}
