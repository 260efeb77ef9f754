import Coaty
import ProblemDetails
import TestSupport
import Testing

@testable import Base
@testable import CoatyTestSupport
@testable import Feeds
@testable import Gate

/// Requests that clients may answer, and the limits on how many are kept.
@Suite(.exclusive) struct ObservedRequestsTests {
    private let scene: GateScene
    private let rights = AnswerRights(window: .seconds(60), limit: 10)

    private var requests: ObservedRequests { scene.hub.requests }

    init() async throws { scene = try await GateScene() }

    /// The feeds observe any request event; the gate answers those that it knows.
    @Test func theGateKnowsEachRequest() {
        let requests = CommunicationEventType.allCases.filter { $0.responseType != nil }
        #expect(requests.count == 4)
        #expect(Set(ClientRequests.types.map { $0.eventType }) == Set(requests))
    }

    private func see(_ id: String, padding: Int = 0) throws {
        let topic = try #require(EventAddress(topic: "coaty/3/-/CLL:o/\(CoatyUUID())/\(id)"))
        let text = #"{"parameters":["\#(String(repeating: "p", count: padding))"]}"#
        let event = try CallEvent(payload: Payload(Array(text.utf8)), address: topic)
        let correlationId = try #require(event.correlationId)
        requests.insert(event)
        rights.insert(DeliveredRequest(correlationId: correlationId, isDiscover: false))
    }

    /// Returns the error of a response, `"none"` if it is valid, or nil if the request is unknown.
    private func fault(
        _ id: String,
        _ event: CommunicationEventType = .return,
        _ payload: String = #"{"result":1}"#
    ) throws -> String? {
        let answer = Answer(
            correlationId: CoatyUUID(wire: id),
            event: event,
            content: try Payload(Array(payload.utf8)),
            rights: rights
        )
        do {
            _ = try scene.gate.perform(answer, by: .anonymous)
            return "none"
        } catch let problem as Problem {
            return problem.status == 404 ? nil : try Payload(Array(problem.body)).json["pointer"]?.string
        } catch PayloadError.invalid(let pointer, _) {
            return pointer
        } catch let error as CommunicationError {
            return "\(error)"
        }
    }

    /// Returns whether a request is kept.
    private func isKept(_ id: String) -> Bool { requests.request(CoatyUUID(wire: id)) != nil }

    @Test func responseMustMatchRequest() throws {
        try see("a")
        #expect(try fault("b") == nil)
        #expect(try fault("a", .resolve) == "/event")
        #expect(try fault("a", .return, #"{"result":1,"error":{}}"#)?.hasPrefix("/") != false)
        #expect(try fault("a") != nil)
    }

    @Test func oldestRequestIsEvictedBeyondMaximumCount() throws {
        for number in 0...Limits().answerableRequests { try see("r\(number)") }
        #expect(!isKept("r0"))
        #expect(isKept("r1"))
        #expect(try fault("r\(Limits().answerableRequests)") != nil)
    }

    @Test func oldestRequestIsEvictedBeyondMaximumBytes() throws {
        try see("a")
        for number in 0..<16 { try see("r\(number)", padding: 1 << 20) }
        #expect(!isKept("a"))
        #expect(!isKept("r0"))
        let kept = (1..<16).filter { isKept("r\($0)") }
        // Requests count with their size in memory, which is larger than that of their text.
        #expect(kept.count > 8 && kept.last == 15)
        // Evicted requests release their bytes.
        for number in 0..<20 { try see("s\(number)") }
        #expect(kept.dropFirst().allSatisfy { isKept("r\($0)") })
        #expect(isKept("s19"))
    }

    @Test func bytesAreASetting() throws {
        let requests = ObservedRequests(limit: 100, maximumBytes: 5000)
        for number in 0..<5 {
            let topic = try #require(EventAddress(topic: "coaty/3/-/CLL:o/\(CoatyUUID())/r\(number)"))
            let text = #"{"parameters":["\#(String(repeating: "p", count: 1500))"]}"#
            let event = try CallEvent(payload: Payload(Array(text.utf8)), address: topic)
            requests.insert(event)
        }
        #expect(requests.request(CoatyUUID(wire: "r4")) != nil && requests.request(CoatyUUID(wire: "r1")) == nil)
    }

    /// A request with a known id does not count towards the bound, so it must not be kept either.
    @Test func firstRequestWithSameIdIsKept() throws {
        try see("a")
        let topic = try #require(EventAddress(topic: "coaty/3/-/DSC/\(CoatyUUID())/a"))
        let event = try DiscoverEvent(payload: Payload(Array(#"{"externalId":"x"}"#.utf8)), address: topic)
        requests.insert(event)
        #expect(try fault("a", .resolve, #"{"object":\#(Made.object(1, 1))}"#) == "/event")
        #expect(try fault("a") != "/event")
    }
}
