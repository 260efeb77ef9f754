/// Answers an Update event with the current object.
public struct CompleteEvent: CommunicationEvent {
    /// `CPL`
    public static let eventType = CommunicationEventType.complete

    /// `{object, privateData?}`
    public let payload: Payload
    /// The agent that answers.
    public let sourceId: CoatyUUID?

    /// Creates an answer.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if the object is not valid.
    public static func with(object: CoatyObject, privateData: [String: AnyCodable]? = nil) throws -> CompleteEvent {
        try CompleteEvent(payload: Payload(encoding: ObjectBody(object: object, privateData: privateData)))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is not `{object, privateData?}`.
    public init(payload: Payload) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = nil
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = address.sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("object", .coatyObject(nil)),
        .optional("privateData", .object([])),
    ]

    /// The event's data.
    public var data: CompleteEventData { CompleteEventData(payload: payload) }
}

/// The data of a Complete event.
public struct CompleteEventData: Sendable {
    let payload: Payload

    /// The current object, decoded on each access: store it.
    ///
    /// - Throws: `DecodingError` if the object's class can't decode it.
    public var object: CoatyObject {
        get throws { try payload.requiredObject() }
    }

    /// Additional data for observers that understand it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
