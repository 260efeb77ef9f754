import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct PublicationSuspectsTests {
    private let start = ContinuousClock.now

    private func publication(_ topic: String, bytes: Int = 10, isAlone: Bool = false) -> Publication {
        var publication = Publication(
            .raw(topic: topic, isRetained: false),
            payload: [UInt8](repeating: 0, count: bytes)
        )
        publication.isWrittenAlone = isAlone
        return publication
    }

    /// Writes a suspect again, alone, and loses the connection.
    private func loseAgain(
        _ suspects: inout PublicationSuspects,
        _ topic: String,
        bytes: Int = 10,
        byBroker: Bool = true
    ) -> PublicationSuspects.Proven? {
        suspects.written(publication(topic, bytes: bytes, isAlone: true))
        return suspects.connectionLost(partly: nil, byBroker: byBroker, now: start)
    }

    @Test func publicationThatEndsTwoConnectionsAloneIsProvenAndRefused() {
        var suspects = PublicationSuspects()
        for topic in ["a", "b"] { suspects.written(publication(topic)) }
        #expect(suspects.connectionLost(partly: nil, byBroker: true, now: start) == nil)
        #expect(suspects.isWrittenAlone(publication("a"), now: start))
        #expect(!suspects.isWrittenAlone(publication("c"), now: start))
        #expect(suspects.refusal(of: publication("a"), now: start) == nil)

        suspects.written(publication("b", isAlone: true))
        suspects.confirmed(1)
        #expect(!suspects.isWrittenAlone(publication("b"), now: start))
        #expect(loseAgain(&suspects, "a") == .init(kind: .topic("a"), size: 11, objectId: nil))
        #expect(suspects.refusal(of: publication("a"), now: start) == .closesConnection)
        #expect(suspects.refusal(of: publication("b"), now: start) == nil)
        #expect(suspects.proven == 1)
    }

    @Test func sizeIsLearnedOnlyFromLargePublications() {
        var suspects = PublicationSuspects()
        suspects.written(publication("a", bytes: 50_000))
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        #expect(suspects.isWrittenAlone(publication("other", bytes: 60_000), now: start))
        #expect(!suspects.isWrittenAlone(publication("other", bytes: 40_000), now: start))
        #expect(loseAgain(&suspects, "a", bytes: 50_000) != nil)
        #expect(
            suspects.refusal(of: publication("other", bytes: 60_000), now: start)
                == .exceedsBrokerLimit(size: 60_005, limit: 50_000)
        )
        // The topic is not to blame.
        #expect(suspects.refusal(of: publication("a"), now: start) == nil)
    }

    @Test func brokerThatRestartsOrNetworkThatFailsProvesNothing() {
        var suspects = PublicationSuspects()
        suspects.written(publication("a"))
        _ = suspects.connectionLost(partly: nil, byBroker: false, now: start)
        #expect(!suspects.isActive)
        suspects.written(publication("a"))
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        #expect(loseAgain(&suspects, "a", byBroker: false) == nil)
        // Another publication may be the cause, too.
        suspects.written(publication("b"))
        #expect(loseAgain(&suspects, "a") == nil)
        // Not written alone.
        suspects.written(publication("a"))
        #expect(suspects.connectionLost(partly: nil, byBroker: true, now: start) == nil)
        #expect(suspects.proven == 0)
    }

    @Test func publicationThatIsBeingWrittenIsACandidate() {
        var suspects = PublicationSuspects()
        let large = publication("a", bytes: 1_000_000, isAlone: true)
        #expect(suspects.connectionLost(partly: large, byBroker: true, now: start) == nil)
        #expect(suspects.connectionLost(partly: large, byBroker: true, now: start) != nil)
    }

    @Test func refusalsEndAndAreLongerNextTime() {
        var suspects = PublicationSuspects()
        suspects.written(publication("a"))
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        _ = loseAgain(&suspects, "a")
        let later = start + PublicationSuspects.refusalTime.first
        #expect(suspects.refusal(of: publication("a"), now: later) == nil)
        #expect(suspects.isWrittenAlone(publication("a"), now: later))
        suspects.written(publication("a", isAlone: true))
        #expect(suspects.connectionLost(partly: nil, byBroker: true, now: later) != nil)
        #expect(suspects.refusal(of: publication("a"), now: later + PublicationSuspects.refusalTime.first) != nil)
        suspects.forgetRefusals()
        #expect(!suspects.isActive)
    }

    @Test func confirmationAcquits() {
        var suspects = PublicationSuspects()
        suspects.written(publication("a", bytes: 50_000))
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        suspects.written(publication("a", bytes: 50_000, isAlone: true))
        suspects.confirmed(1)
        #expect(!suspects.isActive)
        #expect(suspects.connectionLost(partly: nil, byBroker: true, now: start) == nil && !suspects.isActive)
    }

    @Test func deferredPublicationsAreConfirmedUntilTheirKindHasPassed() {
        var suspects = PublicationSuspects()
        var deferred = publication("a")
        deferred.isDeferred = true
        #expect(suspects.isWrittenAlone(deferred, now: start))
        suspects.written(deferred)
        suspects.confirmed(1)
        #expect(!suspects.isWrittenAlone(deferred, now: start))
        var large = publication("a", bytes: PublicationSuspects.largeSize)
        large.isDeferred = true
        #expect(suspects.isWrittenAlone(large, now: start))
        _ = suspects.connectionLost(partly: nil, byBroker: false, now: start)
        #expect(suspects.isWrittenAlone(deferred, now: start))
    }

    @Test func oldestUnconfirmedPublicationsAreForgottenAtTheBound() {
        var suspects = PublicationSuspects()
        let count = PublicationSuspects.maximumUnconfirmed + 2
        for number in 0..<count { suspects.written(publication("\(number)")) }
        suspects.confirmed(count - 1)
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        #expect(suspects.isWrittenAlone(publication("\(count - 1)"), now: start))
        #expect(!suspects.isWrittenAlone(publication("\(count - 2)"), now: start))
    }

    @Test func joinEventsOfTheAgentAreNeverGivenUp() {
        var suspects = PublicationSuspects()
        var identity = Publication(.raw(topic: "identity", isRetained: false), payload: [], isJoinEvent: true)
        suspects.written(identity)
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        identity.isWrittenAlone = true
        for _ in 0..<3 {
            suspects.written(identity)
            #expect(suspects.connectionLost(partly: nil, byBroker: true, now: start) == nil)
        }
    }
}
