/// Sends the responses to a received request back to the requester.
public struct Responder: Sendable {
    weak let manager: CommunicationManager?

    func respond(
        _ eventType: CommunicationEventType,
        _ correlationId: CoatyUUID,
        _ payload: Payload,
        holding: (any PublicationHolder)?
    ) throws(CommunicationError) -> Delivery {
        guard let manager else { throw .offline }
        let publication = manager.publication(eventType, correlationId: correlationId, payload)
        return try manager.session.publish([publication], holding: holding)
    }
}
