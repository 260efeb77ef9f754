/// Answers a Query event.
public struct RetrieveEvent: CommunicationEvent {
    /// `RTV`
    public static let eventType = CommunicationEventType.retrieve

    /// `{objects, privateData?}`
    public let payload: Payload
    /// Who answers.
    public let sourceId: CoatyUUID?

    /// Creates an answer.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where an object is not valid.
    public static func with(
        objects: [CoatyObject],
        privateData: [String: AnyCodable]? = nil
    ) throws -> RetrieveEvent {
        try RetrieveEvent(payload: Payload(encoding: ObjectBody(objects: objects, privateData: privateData)))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload is not `{objects, privateData?}`.
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
        .required("objects", .elements(.coatyObject(nil))),
        .optional("privateData", .object([])),
    ]

    /// What the event answers.
    public var data: RetrieveEventData { RetrieveEventData(payload: payload) }
}

/// What a Retrieve event answers.
public struct RetrieveEventData: Sendable {
    let payload: Payload

    /// The objects, decoded anew each time: keep them.
    ///
    /// - Throws: `DecodingError` where an object's class does not understand it.
    public var objects: [CoatyObject] {
        get throws { try payload.requiredObjects() }
    }

    /// Data that goes with the objects for those who know it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
