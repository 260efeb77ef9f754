/// Carries the responses to a request that came in back to the requester.
public struct Responder: Sendable {
    weak let manager: CommunicationManager?

    func respond(
        _ eventType: CommunicationEventType,
        _ correlationId: CoatyUUID,
        _ payload: Payload
    ) throws(CommunicationError) -> Delivery {
        guard let manager else { throw .offline }
        return try manager.session.publish([manager.publication(eventType, correlationId: correlationId, payload)])
    }
}
