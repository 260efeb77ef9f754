/// Answers a Discover event.
public struct ResolveEvent: CommunicationEvent {
    /// `RSV`
    public static let eventType = CommunicationEventType.resolve

    /// `{object?, relatedObjects?, privateData?}`
    public let payload: Payload
    /// Who answers.
    public let sourceId: CoatyUUID?

    /// Creates an answer with an object, and perhaps objects that are related to it.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where an object is not valid.
    public static func with(
        object: CoatyObject,
        relatedObjects: [CoatyObject]? = nil,
        privateData: [String: AnyCodable]? = nil
    ) throws -> ResolveEvent {
        let body = ObjectBody(object: object, relatedObjects: relatedObjects, privateData: privateData)
        return try ResolveEvent(payload: Payload(encoding: body))
    }

    /// Creates an answer with related objects only.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where an object is not valid.
    public static func with(
        relatedObjects: [CoatyObject],
        privateData: [String: AnyCodable]? = nil
    ) throws -> ResolveEvent {
        try ResolveEvent(
            payload: Payload(encoding: ObjectBody(relatedObjects: relatedObjects, privateData: privateData))
        )
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload has neither `object` nor `relatedObjects`, or an invalid one.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = address.sourceId
    }

    private static func check(_ payload: Payload) throws(PayloadError) {
        try payload.check(schema)
        if payload.json["object"] == nil, payload.json["relatedObjects"] == nil {
            throw .missing("object", in: payload.json)
        }
    }

    private static let schema: [PropertyRule] = [
        .optional("object", .coatyObject(nil)),
        .optional("relatedObjects", .elements(.coatyObject(nil))),
        .optional("privateData", .object([])),
    ]

    /// What the event answers.
    public var data: ResolveEventData { ResolveEventData(payload: payload) }
}

/// What a Resolve event answers.
public struct ResolveEventData: Sendable {
    let payload: Payload

    /// The object, decoded anew each time; nil where only related objects are given.
    ///
    /// - Throws: `DecodingError` where the object's class does not understand it.
    public var object: CoatyObject? {
        get throws { try payload.object() }
    }

    /// Objects related to the one that was asked for, decoded anew each time.
    ///
    /// - Throws: `DecodingError` where an object's class does not understand it.
    public var relatedObjects: [CoatyObject]? {
        get throws { try payload.objects("relatedObjects") }
    }

    /// Data that goes with the objects for those who know it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
