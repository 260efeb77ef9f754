import Coaty
import TestSupport
import Testing

@testable import Base
@testable import Feeds

/// How often, and for how long, a client may answer a request.
@Suite(.exclusive) struct AnswerRightsTests {
    private static let limit = 1024
    private let rights = AnswerRights(window: .seconds(60), limit: Self.limit)

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
        for _ in 0..<Limits().discoverAnswers { #expect(take(1)) }
        #expect(!take(1))
    }

    @Test func oldestRequestsAreForgotten() {
        for id in 0...Self.limit { rights.insert(request(id)) }
        #expect(!take(0))
        #expect(take(1))
        #expect(take(Self.limit))
    }

    @Test func requestCannotBeAnsweredAfterTheWindow() {
        let rights = AnswerRights(window: .zero, limit: Self.limit)
        rights.insert(request(1))
        #expect(!rights.contains(CoatyUUID(wire: "1")))
        #expect(!rights.take(CoatyUUID(wire: "1")))
    }
}
