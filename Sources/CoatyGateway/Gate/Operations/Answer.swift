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

    private var pattern: AccessPattern {
        switch event {
        case .retrieve: .query
        case .complete: .update
        case .return: .call
        default: .discover
        }
    }

    /// Returns the request. A request that was delivered only to another client is unknown here, too.
    func resolve(in network: NetworkParts) -> EventRequest? {
        rights.contains(correlationId) ? network.feeds.requests.request(correlationId) : nil
    }

    var unknown: Problem { Problems.noSuchRequestObserved }
    var kind: OperationKind { OperationKind(verb: .answer, pattern: pattern) }

    var concealment: AccessRequest? {
        AccessRequest(verb: .answer, pattern: pattern, target: pattern == .call ? .anyOperation : .anyObject)
    }

    func claims(on target: EventRequest, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        switch target {
        case .call(let event): return [AccessRequest.call(.answer, event)]
        case .discover(let event): return claims(.discover, AccessRequest.types(.answer, .discover, in: event.payload))
        case .query(let event): return claims(.query, AccessRequest.types(.answer, .query, in: event.payload))
        case .update(let event):
            guard let object = event.payload.json["object"] else { return [] }
            return claims(.update, AccessRequest.objects(.answer, .update, [object]))
        }
    }

    /// Returns the claims for the objects of the answer; if there are none, the claims for the content of the request.
    private func claims(_ pattern: AccessPattern, _ asked: [AccessRequest]) -> [AccessRequest] {
        let objects = content.allObjects
        return objects.isEmpty ? asked : AccessRequest.objects(.answer, pattern, objects)
    }

    /// - Throws: `Problem` if the right is used up or the client has reached its share of the outbox, `PayloadError` if
    ///   the response is invalid or does not match the request, `CommunicationError` if it can't be published.
    func execute(on target: EventRequest, in network: NetworkParts, under permit: Permit) throws -> Delivery {
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

extension EventRequest {
    fileprivate func answer(
        with name: CommunicationEventType,
        _ payload: Payload,
        by manager: CommunicationManager,
        holding place: Place
    ) throws -> Delivery {
        // Called when the type is known to be right.
        func checked() throws(PayloadError) -> Payload { try EventMembers.checked(payload, as: name) }
        return switch self {
        case .discover(let event): try answer(event, name, ResolveEvent(payload: checked()), manager, place)
        case .query(let event): try answer(event, name, RetrieveEvent(payload: checked()), manager, place)
        case .update(let event): try answer(event, name, CompleteEvent(payload: checked()), manager, place)
        case .call(let event): try answer(event, name, ReturnEvent(payload: checked()), manager, place)
        }
    }

    private func answer<Event: RequestEvent>(
        _ request: Event,
        _ name: CommunicationEventType,
        _ response: @autoclosure () throws -> Event.Response,
        _ manager: CommunicationManager,
        _ place: Place
    ) throws -> Delivery {
        guard Event.Response.eventType == name else {
            throw PayloadError.invalid(pointer: "/event", reason: "must be \(Event.Response.eventType.name)")
        }
        return try request.answered(by: manager).answer(response(), holding: place)
    }
}
