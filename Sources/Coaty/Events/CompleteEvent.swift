/// Answers an Update event with the object as it is now.
public struct CompleteEvent: CommunicationEvent {
    /// `CPL`
    public static let eventType = CommunicationEventType.complete

    /// `{object, privateData?}`
    public let payload: Payload
    /// Who answers.
    public let sourceId: CoatyUUID?

    /// Creates an answer.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where the object is not valid.
    public static func with(object: CoatyObject, privateData: [String: AnyCodable]? = nil) throws -> CompleteEvent {
        try CompleteEvent(payload: Payload(encoding: ObjectBody(object: object, privateData: privateData)))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload is not `{object, privateData?}`.
    public init(payload: Payload) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = address.sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("object", .coatyObject(nil)),
        .optional("privateData", .object([])),
    ]

    /// What the event answers.
    public var data: CompleteEventData { CompleteEventData(payload: payload) }
}

/// What a Complete event answers.
public struct CompleteEventData: Sendable {
    let payload: Payload

    /// The object as it is now, decoded anew each time: keep it.
    ///
    /// - Throws: `DecodingError` where the object's class does not understand it.
    public var object: CoatyObject {
        get throws { try payload.requiredObject() }
    }

    /// Data that goes with the object for those who know it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
