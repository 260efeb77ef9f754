/// Requests or suggests an update of an object.
public struct UpdateEvent: RequestEvent {
    /// `UPD`
    public static let eventType = CommunicationEventType.update

    /// `{object}`
    public let payload: Payload
    /// The identifying properties of the object, read without decoding it.
    public let header: ObjectHeader
    /// The agent that sends the request.
    public let sourceId: CoatyUUID?
    /// The id of the request; nil for a local event that is not yet published.
    public let correlationId: CoatyUUID?
    /// Sends answers to the requester; nil for a local event.
    public var responder: Responder?

    /// Creates a request with the desired object.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if the object is not valid.
    public static func with(object: CoatyObject) throws -> UpdateEvent {
        try UpdateEvent(payload: Payload(encoding: ObjectBody(object: object)))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is not `{object}` with an object whose type is a valid name.
    public init(payload: Payload) throws(PayloadError) {
        try payload.check(Self.schema)
        header = try ObjectHeader(of: payload, isPublishedHere: true)
        self.payload = payload
        sourceId = nil
        correlationId = nil
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        header = try ObjectHeader(of: payload, isPublishedHere: false)
        self.payload = payload
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    private static let schema: [PropertyRule] = [.required("object", .coatyObject(nil))]

    /// The event's data.
    public var data: UpdateEventData { UpdateEventData(payload: payload) }

    /// The object type, unless it is the core type's default object type, followed by the core type: existing agents
    /// expect this order.
    public var names: [EventName?] { header.names.reversed() }

    /// Checks that the object is the one to be updated.
    public func checkFits(_ response: CompleteEvent) throws(PayloadError) {
        try response.payload.json["object"]?.check("objectId", isIn: [header.objectId.string])
    }

    /// Answers the request with the current object. Several answers are allowed.
    ///
    /// - Throws: ``PayloadError`` if the answer does not match the request; ``CommunicationError`` if it can't be
    ///   published.
    @discardableResult
    public func complete(_ event: CompleteEvent) throws -> Delivery {
        try answer(event)
    }
}

/// The data of an Update event.
public struct UpdateEventData: Sendable {
    let payload: Payload

    /// The desired object, decoded on each access: store it.
    ///
    /// - Throws: `DecodingError` if the object's class can't decode it.
    public var object: CoatyObject {
        get throws { try payload.requiredObject() }
    }
}
