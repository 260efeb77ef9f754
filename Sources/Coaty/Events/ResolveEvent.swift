/// Answers a Discover event.
public struct ResolveEvent: CommunicationEvent {
    /// `RSV`
    public static let eventType = CommunicationEventType.resolve

    /// `{object?, relatedObjects?, privateData?}`
    public let payload: Payload
    /// The agent that answers.
    public let sourceId: CoatyUUID?

    /// Creates an answer with an object and, optionally, related objects.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if an object is not valid.
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
    /// - Throws: `EncodingError` or ``PayloadError`` if an object is not valid.
    public static func with(
        relatedObjects: [CoatyObject],
        privateData: [String: AnyCodable]? = nil
    ) throws -> ResolveEvent {
        try ResolveEvent(
            payload: Payload(encoding: ObjectBody(relatedObjects: relatedObjects, privateData: privateData))
        )
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload has neither `object` nor `relatedObjects`, or an invalid one.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = nil
    }

    /// Decodes a received event.
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

    /// The event's data.
    public var data: ResolveEventData { ResolveEventData(payload: payload) }
}

/// The data of a Resolve event.
public struct ResolveEventData: Sendable {
    let payload: Payload

    /// The object, decoded on each access; nil if only related objects are given.
    ///
    /// - Throws: `DecodingError` if the object's class can't decode it.
    public var object: CoatyObject? {
        get throws { try payload.object() }
    }

    /// Objects related to the requested one, decoded on each access.
    ///
    /// - Throws: `DecodingError` if an object's class can't decode it.
    public var relatedObjects: [CoatyObject]? {
        get throws { try payload.objects("relatedObjects") }
    }

    /// Additional data for observers that understand it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
