import Access
import Base
import Coaty
import Network
import ProblemDetails

/// Answers a request that was delivered to the client.
struct Answer: Operation {
    let correlationId: CoatyUUID
    /// The type of the answer.
    let event: CommunicationEventType
    let content: Payload
    /// The requests that the client may answer.
    let rights: AnswerRights
    /// The identity that publishes; nil for the gateway's identity.
    var identity: ClientIdentity?

    var payload: Payload? { content }

    private var pattern: AccessPattern { ClientRequests.type(answeredBy: event)?.pattern ?? .discover }

    /// Returns the request. A request that was delivered only to another client is unknown here, too.
    func resolve(in network: NetworkParts) -> (any ClientRequest)? {
        rights.contains(correlationId) ? network.feeds.requests.request(correlationId) : nil
    }

    var unknown: Problem { Problems.noSuchRequestObserved }
    var kind: OperationKind { OperationKind(verb: .answer, pattern: pattern) }

    var concealment: AccessRequest? {
        let hasOperation = ClientRequests.type(answeredBy: event)?.hasOperation ?? false
        return AccessRequest(verb: .answer, pattern: pattern, target: hasOperation ? .anyOperation : .anyObject)
    }

    func claims(
        on target: any ClientRequest,
        in network: NetworkParts,
        by subject: Principal.Subject
    ) -> [AccessRequest] {
        target.answerClaims(with: content)
    }

    /// - Throws: `Problem` if the right is used up or the client has reached its share of the outbox, `PayloadError` if
    ///   the response is invalid or does not match the request, `CommunicationError` if it can't be published.
    func execute(on target: any ClientRequest, in network: NetworkParts, under permit: Permit) throws -> Delivery {
        guard rights.take(correlationId) else { throw unknown }
        do {
            let place = try permit.account.takeOutbox(content.bytes.count)
            return try target.answer(with: event, content, by: identity?.manager ?? network.manager, holding: place)
        } catch {
            rights.giveBack(correlationId)
            throw error
        }
    }
}

extension ClientRequest {
    fileprivate func answer(
        with type: CommunicationEventType,
        _ payload: Payload,
        by manager: CommunicationManager,
        holding place: Place
    ) throws -> Delivery {
        guard Response.eventType == type else {
            throw PayloadError.invalid(pointer: "/event", reason: "must be \(Response.eventType.name)")
        }
        let response = try Self.response(EventMembers.checked(payload, as: type))
        return try answered(by: manager).answer(response, holding: place)
    }
}
