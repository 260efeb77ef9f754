/// Answers a Query event.
public struct RetrieveEvent: CommunicationEvent {
    /// `RTV`
    public static let eventType = CommunicationEventType.retrieve

    /// `{objects, privateData?}`
    public let payload: Payload
    /// The agent that answers.
    public let sourceId: CoatyUUID?

    /// Creates an answer.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if an object is not valid.
    public static func with(
        objects: [CoatyObject],
        privateData: [String: AnyCodable]? = nil
    ) throws -> RetrieveEvent {
        try RetrieveEvent(payload: Payload(encoding: ObjectBody(objects: objects, privateData: privateData)))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is not `{objects, privateData?}`.
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
        .required("objects", .elements(.coatyObject(nil))),
        .optional("privateData", .object([])),
    ]

    /// The event's data.
    public var data: RetrieveEventData { RetrieveEventData(payload: payload) }
}

/// The data of a Retrieve event.
public struct RetrieveEventData: Sendable {
    let payload: Payload

    /// The objects, decoded on each access: store them.
    ///
    /// - Throws: `DecodingError` if an object's class can't decode it.
    public var objects: [CoatyObject] {
        get throws { try payload.requiredObjects() }
    }

    /// Additional data for observers that understand it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
