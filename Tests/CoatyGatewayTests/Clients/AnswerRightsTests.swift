import Coaty
import Testing

@testable import CoatyGateway

/// How often, and for how long, a client may answer a request.
@Suite struct AnswerRightsTests {
    private let rights = AnswerRights(window: .seconds(60))

    private func request(_ id: Int, isDiscover: Bool = false) -> DeliveredRequest {
        DeliveredRequest(correlationId: CoatyUUID(wire: "\(id)"), isDiscover: isDiscover)
    }

    private func take(_ id: Int) -> Bool { rights.take(CoatyUUID(wire: "\(id)")) }

    @Test func requestIsAnsweredOnce() {
        #expect(!take(1))
        rights.insert(request(1))
        #expect(take(1))
        #expect(!take(1))
        // The same request on a second topic, or again after a resumption.
        rights.insert(request(1))
        #expect(!take(1))
        rights.giveBack(CoatyUUID(wire: "1"))
        #expect(take(1))
    }

    @Test func discoverIsAnsweredOncePerObject() {
        rights.insert(request(1, isDiscover: true))
        for _ in 0..<AnswerRights.maximumResolves { #expect(take(1)) }
        #expect(!take(1))
    }

    @Test func oldestRequestsAreForgotten() {
        for id in 0...AnswerRights.maximumRequests { rights.insert(request(id)) }
        #expect(!take(0))
        #expect(take(1))
        #expect(take(AnswerRights.maximumRequests))
    }

    @Test func requestCannotBeAnsweredAfterTheWindow() {
        let rights = AnswerRights(window: .zero)
        rights.insert(request(1))
        #expect(!rights.contains(CoatyUUID(wire: "1")))
        #expect(!rights.take(CoatyUUID(wire: "1")))
    }
}
