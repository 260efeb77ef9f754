import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct PublicationSuspectsTests {
    private let start = ContinuousClock.now

    private func publication(_ topic: String, bytes: Int = 10, of client: TestClient? = nil) -> Publication {
        var publication = Publication(
            .raw(topic: topic, isRetained: false),
            payload: [UInt8](repeating: 0, count: bytes)
        )
        publication.client = client
        return publication
    }

    /// Loses a connection behind publications.
    private func lose(_ suspects: inout PublicationSuspects, _ written: Publication..., at time: Duration = .zero) {
        for publication in written { suspects.written(publication) }
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start + time)
    }

    @Test func clientsAndKindsOfUnconfirmedPublicationsAreSuspected() {
        var suspects = PublicationSuspects()
        let (one, other) = (TestClient(), TestClient())
        suspects.written(publication("confirmed", of: other))
        suspects.confirmed(1)
        lose(&suspects, publication("a", of: one))
        #expect(suspects.isSuspect(publication("another", of: one), now: start))
        #expect(suspects.isSuspect(publication("a", of: other), now: start))
        #expect(!suspects.isSuspect(publication("confirmed", of: other), now: start))
        // Nothing is refused without a proof.
        #expect(suspects.refusal(of: publication("a", of: one), now: start) == nil)
        let later = start + PublicationSuspects.suspicionTime
        #expect(!suspects.isSuspect(publication("a", of: one), now: later))
        suspects.forgetExpired(now: later)
        #expect(!suspects.isActive)
    }

    @Test func kindIsRefusedOnlyToTheClientThatHasPublishedTheProvenOne() {
        var suspects = PublicationSuspects()
        let (one, other) = (TestClient(), TestClient())
        lose(&suspects, publication("a", of: one))
        suspects.prove(publication("a", of: one), now: start)
        #expect(suspects.refusal(of: publication("a", of: one), now: start) == .closesConnection)
        #expect(suspects.refusal(of: publication("b", of: one), now: start) == nil)
        #expect(suspects.refusal(of: publication("a", of: other), now: start) == nil)
        #expect(suspects.isSuspect(publication("a", of: other), now: start))
        #expect(suspects.proven == 1)
    }

    @Test func sizeIsLearnedOnlyFromLargePublications() {
        var suspects = PublicationSuspects()
        let (one, other) = (TestClient(), TestClient())
        lose(&suspects, publication("a", bytes: 50_000, of: one))
        #expect(suspects.isSuspect(publication("other", bytes: 60_000, of: other), now: start))
        #expect(!suspects.isSuspect(publication("other", bytes: 40_000, of: other), now: start))
        suspects.prove(publication("a", bytes: 50_000, of: one), now: start)
        #expect(
            suspects.refusal(of: publication("other", bytes: 60_000, of: one), now: start)
                == .exceedsBrokerLimit(size: 60_005, limit: 50_000)
        )
        // The topic is not to blame, and another client may publish anything.
        #expect(suspects.refusal(of: publication("a", of: one), now: start) == nil)
        #expect(suspects.refusal(of: publication("other", bytes: 60_000, of: other), now: start) == nil)
        suspects.passed(publication("other", bytes: 60_000, of: other))
        #expect(!suspects.isSuspect(publication("third", bytes: 70_000, of: other), now: start))
    }

    @Test func networkThatFailsOrBrokerThatIsGoneAccusesNobody() {
        var suspects = PublicationSuspects()
        suspects.written(publication("a"))
        _ = suspects.connectionLost(partly: nil, byBroker: false, now: start)
        #expect(!suspects.isActive)
        lose(&suspects, publication("a"))
        #expect(suspects.isActive)
        suspects.brokerIsGone()
        #expect(!suspects.isActive)
    }

    @Test func publicationThatIsBeingWrittenIsSuspected() {
        var suspects = PublicationSuspects()
        let loss = suspects.connectionLost(partly: publication("a", bytes: 1_000_000), byBroker: true, now: start)
        #expect(loss.suspected == 1)
        #expect(suspects.isSuspect(publication("b", bytes: 1_000_000), now: start))
    }

    @Test func suspicionEndsWhenEnoughPublicationsHavePassedUnlessItIsProven() {
        var suspects = PublicationSuspects()
        let (one, other) = (TestClient(), TestClient())
        lose(&suspects, publication("a", of: one), publication("b", of: other))
        suspects.prove(publication("b", of: other), now: start)
        for _ in 0..<PublicationSuspects.acquittingPasses {
            #expect(suspects.isSuspect(publication("a", of: one), now: start))
            suspects.passed(publication("a", of: one))
            suspects.passed(publication("c", of: other))
        }
        #expect(!suspects.isSuspect(publication("a", of: one), now: start))
        #expect(suspects.isSuspect(publication("c", of: other), now: start))
    }

    @Test func refusalsEndAndAreLongerNextTime() {
        var suspects = PublicationSuspects()
        let client = TestClient()
        lose(&suspects, publication("a", of: client))
        suspects.prove(publication("a", of: client), now: start)
        let later = start + PublicationSuspects.refusalTime.first
        #expect(suspects.refusal(of: publication("a", of: client), now: later) == nil)
        #expect(suspects.isSuspect(publication("a", of: client), now: later + PublicationSuspects.suspicionTime))
        suspects.prove(publication("a", of: client), now: later)
        let next = later + PublicationSuspects.refusalTime.first
        #expect(suspects.refusal(of: publication("a", of: client), now: next) != nil)
        suspects.forgetAll()
        #expect(!suspects.isActive && suspects.refusal(of: publication("a", of: client), now: next) == nil)
    }

    @Test func everythingIsSuspectedWhenTheBrokerClosesSeveralConnections() {
        var suspects = PublicationSuspects()
        for loss in 1...PublicationSuspects.maximumLosses {
            lose(&suspects, publication("\(loss)", of: TestClient()), at: .seconds(loss))
            let isSuspect = suspects.isSuspect(publication("innocent", of: TestClient()), now: start + .seconds(loss))
            #expect(isSuspect == (loss == PublicationSuspects.maximumLosses))
        }
        let later = start + .seconds(PublicationSuspects.maximumLosses) + PublicationSuspects.lossTime
        #expect(!suspects.isSuspect(publication("innocent", of: TestClient()), now: later))
        #expect(suspects.isSuspect(publication("1", of: TestClient()), now: later))
    }

    @Test func everythingIsSuspectedWhenMoreIsSuspectedThanIsStored() {
        var suspects = PublicationSuspects()
        for number in 0..<PublicationSuspects.maximumSubjects { suspects.written(publication("\(number)")) }
        lose(&suspects)
        #expect(!suspects.isSuspect(publication("innocent"), now: start))
        lose(&suspects, publication("one more"))
        #expect(suspects.isSuspect(publication("innocent"), now: start))
    }

    @Test func provenPublicationsOfOneClientNeverMakeEverythingSuspected() {
        var suspects = PublicationSuspects()
        let client = TestClient()
        for number in 0...PublicationSuspects.maximumSubjects {
            suspects.prove(publication("\(number)", of: client), now: start)
        }
        #expect(suspects.isSuspect(publication("another", of: client), now: start))
        #expect(!suspects.isSuspect(publication("innocent", of: TestClient()), now: start))
    }

    @Test func lastUnconfirmedRetainedMessageOfEachTopicIsPublishedAgain() {
        func retained(_ topic: String, _ text: String) -> Publication {
            Publication(.raw(topic: topic, isRetained: true), payload: Array(text.utf8))
        }
        for isByBroker in [true, false] {
            var suspects = PublicationSuspects()
            suspects.written(retained("confirmed", ""))
            for (topic, text) in [("a", "old"), ("b", "only"), ("a", "new")] { suspects.written(retained(topic, text)) }
            suspects.written(publication("event"))
            suspects.confirmed(1)
            let loss = suspects.connectionLost(partly: nil, byBroker: isByBroker, now: start)
            #expect(loss.retained.map { String(decoding: $0.payload, as: UTF8.self) } == ["only", "new"])
            #expect(suspects.connectionLost(partly: nil, byBroker: isByBroker, now: start).retained.isEmpty)
        }
    }

    @Test func retainedMessagesBeyondTheBoundAreNotKept() {
        var suspects = PublicationSuspects()
        let half = [UInt8](repeating: 0, count: PublicationSuspects.maximumRetainedBytes / 2)
        func write(_ topic: String) {
            suspects.written(Publication(.raw(topic: topic, isRetained: true), payload: half))
        }
        write("a")
        write("beyond")
        suspects.confirmed(1)
        write("c")
        #expect(suspects.connectionLost(partly: nil, byBroker: true, now: start).retained.count == 1)
    }

    @Test func deferredPublicationsAreConfirmedUntilTheirKindHasPassed() {
        var suspects = PublicationSuspects()
        #expect(suspects.isConfirmedAlone(deferred: publication("a")))
        suspects.written(publication("a"))
        suspects.confirmed(1)
        #expect(!suspects.isConfirmedAlone(deferred: publication("a")))
        #expect(suspects.isConfirmedAlone(deferred: publication("a", bytes: PublicationSuspects.largeSize)))
        _ = suspects.connectionLost(partly: nil, byBroker: false, now: start)
        #expect(suspects.isConfirmedAlone(deferred: publication("a")))
    }

    @Test func oldestUnconfirmedPublicationsAreForgottenAtTheBound() {
        var suspects = PublicationSuspects()
        let count = PublicationSuspects.maximumUnconfirmed + 2
        for number in 0..<count { suspects.written(publication("\(number)")) }
        suspects.confirmed(count - 1)
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        #expect(suspects.isSuspect(publication("\(count - 1)"), now: start))
        #expect(!suspects.isSuspect(publication("\(count - 2)"), now: start))
    }

    @Test func announcementsOfTheAgentAreNeverSuspected() {
        var suspects = PublicationSuspects()
        suspects.written(Publication(.raw(topic: "identity", isRetained: false), payload: [], isJoinEvent: true))
        _ = suspects.connectionLost(partly: nil, byBroker: true, now: start)
        #expect(!suspects.isActive)
    }
}

final class TestClient: PublicationClient {
    var label: String { "test" }

    func publicationWasRefused(_ publication: RefusedPublication) {}
}
