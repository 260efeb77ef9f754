package import Access
import Base
package import Coaty
package import Feeds
package import Network
package import ProblemDetails

/// Answers a request that was delivered to the client.
package struct Answer: Operation {
    let correlationId: CoatyUUID
    /// The type of the answer.
    let event: CommunicationEventType
    let content: Payload
    /// The requests that the client may answer.
    let rights: AnswerRights
    /// The identity that publishes; nil for the gateway's identity.
    var identity: ClientIdentity?

    package init(
        correlationId: CoatyUUID,
        event: CommunicationEventType,
        content: Payload,
        rights: AnswerRights,
        identity: ClientIdentity? = nil
    ) {
        self.correlationId = correlationId
        self.event = event
        self.content = content
        self.rights = rights
        self.identity = identity
    }

    package var payload: Payload? { content }

    private var pattern: AccessPattern { ClientRequests.type(answeredBy: event)?.pattern ?? .discover }

    /// Returns the request. A request that was delivered only to another client is unknown here, too.
    package func resolve(in network: NetworkParts) -> (any ClientRequest)? {
        guard rights.contains(correlationId) else { return nil }
        // Only patterns of clients are observed as requests.
        return network.feeds.requests.request(correlationId) as? any ClientRequest
    }

    package var unknown: Problem { Problems.noSuchRequestObserved }
    package var kind: OperationKind { OperationKind(verb: .answer, pattern: pattern) }

    package var concealment: AccessRequest? {
        let hasOperation = ClientRequests.type(answeredBy: event)?.hasOperation ?? false
        return AccessRequest(verb: .answer, pattern: pattern, target: hasOperation ? .anyOperation : .anyObject)
    }

    package func claims(
        on target: any ClientRequest,
        in network: NetworkParts,
        by subject: Principal.Subject
    ) -> [AccessRequest] {
        target.answerClaims(with: content)
    }

    /// - Throws: `Problem` if the right is used up or the client has reached its share of the outbox, `PayloadError` if
    ///   the response is invalid or does not match the request, `CommunicationError` if it can't be published.
    package func execute(on target: any ClientRequest, in network: NetworkParts, under permit: Permit) throws
        -> Delivery
    {
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
