import Logging
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Publications because of which a broker may close the connection: on the quarantine's connection, and on the agent's if the
/// broker accepts no other.
@Suite(.exclusive) struct SessionTrialsTests {
    private final class Holder: PublicationHolder {
        let client: (any PublicationClient)?

        init(_ client: TestClient) { self.client = client }
    }

    private final class Delegate: SessionDelegate {
        func received(_ message: InboundMessage) {}
        func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?) {}
        func mayHaveMissed() {}
        func sessionEnded() {}
    }

    private let one = TestClient()
    private let other = TestClient()
    private let agent = RecordingBinding()
    private let second = RecordingBinding()
    private let session: Session

    init() throws {
        let second = self.second
        session = Session(
            Session.Configuration(
                identityId: CoatyUUID(),
                namespace: "-",
                observesAllNamespaces: false,
                limits: OutboxLimits(publications: 100, bytes: 1 << 20),
                makeBinding: { _ in second },
                quarantineRefusedTime: .zero
            ),
            binding: agent,
            log: SessionLog(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        )
        session.start(Delegate())
        try link.connected()
    }

    private var link: BindingSession { get throws { try #require(agent.link?.session) } }
    private var quarantine: BindingSession { get throws { try #require(second.link?.session) } }

    private func publish(_ topic: String, of client: TestClient, isRetained: Bool = false) throws {
        let publication = Publication(.raw(topic: topic, isRetained: isRetained), payload: [])
        _ = try session.publish([publication], holding: Holder(client))
    }

    /// Takes the next publication, and returns its topic; nil if there is none.
    private func take(_ link: BindingSession) -> (topic: String, isWrittenAlone: Bool)? {
        guard case .publish(let publication)? = link.nextOperation() else { return nil }
        guard case .raw(let topic, _) = publication.destination else { return nil }
        return (topic, publication.isWrittenAlone)
    }

    private func write(_ link: BindingSession, isRead: Bool = true) -> String? {
        guard let topic = take(link)?.topic else { return nil }
        link.publicationsWritten()
        if isRead { link.publicationsRead(1) }
        return topic
    }

    private func lose(_ link: BindingSession) {
        link.lost(ConnectionError(.closed, "closed"), byPublication: true)
        link.connected()
    }

    /// Loses the agent's connection behind a publication of a client.
    private func accuse(_ client: TestClient, isRetained: Bool = false) throws {
        try publish("bad", of: client, isRetained: isRetained)
        #expect(try write(link, isRead: false) == "bad")
        try lose(link)
    }

    @Test func stateIsGivenUpWhenTwoConnectionsAreLostAndAnEventWithOne() throws {
        try accuse(one, isRetained: true)
        let quarantine = try quarantine
        quarantine.connected()
        #expect(write(quarantine, isRead: false) == "bad", "a retained message is published again")
        lose(quarantine)
        #expect(write(quarantine, isRead: false) == "bad", "the broker's end may have been the cause")
        #expect(session.core.withLock { $0.suspects.proven } == 0)
        lose(quarantine)
        #expect(write(quarantine) == nil)
        #expect(session.core.withLock { $0.suspects.proven } == 1)
        #expect(throws: CommunicationError.closesConnection) { try publish("bad", of: one) }

        try publish("event", of: one)
        #expect(write(quarantine, isRead: false) == "event")
        lose(quarantine)
        #expect(write(quarantine) == nil, "an event is never written twice")
        #expect(session.core.withLock { $0.suspects.proven } == 2)
    }

    @Test func lossOfTheAgentsConnectionProvesNothing() throws {
        try accuse(one)
        try publish("event", of: one)
        let quarantine = try quarantine
        quarantine.connected()
        #expect(write(quarantine, isRead: false) == "event")
        quarantine.lost(ConnectionError(.closed, "closed"), byPublication: true)
        try lose(link)
        quarantine.connected()
        #expect(session.core.withLock { $0.suspects.proven } == 0)
        try publish("event", of: one)
        #expect(write(quarantine) == "event")
    }

    @Test func suspectsTakeTurnsByClient() throws {
        try publish("b", of: other)
        #expect(try write(link, isRead: false) == "b")
        try accuse(one)
        for number in 0..<3 { try publish("one/\(number)", of: one) }
        let quarantine = try quarantine
        quarantine.connected()
        for number in 0..<2 { try publish("other/\(number)", of: other) }
        #expect(write(quarantine, isRead: false) == "one/0")
        lose(quarantine)
        let rest = (0..<4).map { _ in write(quarantine) }
        #expect(rest == ["other/0", "other/1", "one/1", "one/2"])
    }

    @Test func suspectWaitsUntilTheBrokerHasReadWhatItsClientHasPublishedBefore() throws {
        try accuse(one)
        // This client is not suspected, but the topic is.
        try publish("innocent", of: other)
        try publish("bad", of: other)
        let quarantine = try quarantine
        quarantine.connected()
        #expect(try write(link, isRead: false) == "innocent")
        #expect(write(quarantine) == nil)
        let wakes = second.wakes
        try link.publicationsRead(1)
        #expect(second.wakes > wakes)
        #expect(write(quarantine) == "bad")
    }

    @Test func suspectsReturnToTheAgentsConnectionInOrderWhenTheBrokerAcceptsNoOther() throws {
        try accuse(one)
        for number in 0..<3 { try publish("\(number)", of: one) }
        let quarantine = try quarantine
        #expect(try write(link) == nil)
        quarantine.failed(ConnectionError(.notAuthorized, "refused"))
        try publish("3", of: one)
        for number in 0..<4 {
            let taken = try #require(take(try link))
            #expect(taken.topic == "\(number)" && taken.isWrittenAlone)
            try link.publicationsWritten()
            try link.publicationsRead(1)
        }
        #expect(session.core.withLock { $0.quarantine == nil && $0.suspects.proven == 0 })
        // The one that ends the agent's connection alone is not published on the next one.
        try publish("bad", of: one)
        #expect(try write(link, isRead: false) == "bad")
        try lose(link)
        #expect(try write(link) == nil)
        #expect(throws: CommunicationError.closesConnection) { try publish("bad", of: one) }
    }

    @Test func suspectOnTheAgentsConnectionIsInnocentIfTheBrokerIsGone() throws {
        try accuse(one)
        try publish("state", of: one, isRetained: true)
        try quarantine.failed(ConnectionError(.notAuthorized, "refused"))
        #expect(try write(link, isRead: false) == "state")
        try link.lost(ConnectionError(.closed, "closed"), byPublication: true)
        try link.failed(ConnectionError(.connectionRefused, "refused"), isFormerBroker: false)
        #expect(session.core.withLock { $0.trial != nil }, "another broker")
        try link.failed(ConnectionError(.connectionRefused, "refused"))
        try link.connected()
        #expect(try write(link) == "state")
        #expect(session.core.withLock { $0.suspects.proven } == 0)
    }

    @Test func stopPublishesWhatIsInQuarantine() async throws {
        try accuse(one)
        try publish("last", of: one)
        let quarantine = try quarantine
        quarantine.connected()
        let stop = Task { [session] in await session.stop(forGood: false, Delegate()) }
        try waitUntil("stopping") { session.core.withLock { !$0.state.isStarted } }
        #expect(write(quarantine) == "last")
        await stop.value
        #expect(second.link == nil && agent.link == nil)
    }
}
