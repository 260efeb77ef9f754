/// Advertises an object to everybody who is interested in its core type or object type.
public struct AdvertiseEvent: CommunicationEvent {
    /// `ADV`
    public static let eventType = CommunicationEventType.advertise

    /// `{object, privateData?}`
    public let payload: Payload
    /// What identifies the object.
    package let object: ObjectHeader
    /// Who advertised.
    public let sourceId: CoatyUUID?

    /// Creates an event that advertises an object.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where the object is none that may be advertised.
    public static func with(object: CoatyObject, privateData: [String: AnyCodable]? = nil) throws -> AdvertiseEvent {
        try AdvertiseEvent(payload: Payload(encoding: ObjectBody(object: object, privateData: privateData)))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload is not `{object, privateData?}` with an object whose type can stand in
    ///   a topic.
    public init(payload: Payload) throws(PayloadError) {
        try self.init(payload: payload, sourceId: nil, isPublishedHere: true)
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try self.init(payload: payload, sourceId: address.sourceId, isPublishedHere: false)
    }

    private init(payload: Payload, sourceId: CoatyUUID?, isPublishedHere: Bool) throws(PayloadError) {
        try payload.check(Self.schema)
        object = try ObjectHeader(of: payload, isPublishedHere: isPublishedHere)
        self.payload = payload
        self.sourceId = sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("object", .coatyObject(nil)),
        .optional("privateData", .object([])),
    ]

    /// What the event says.
    public var data: AdvertiseEventData { AdvertiseEventData(payload: payload) }
}

/// What an Advertise event says.
public struct AdvertiseEventData: Sendable {
    let payload: Payload

    /// The object, decoded anew each time: keep it.
    ///
    /// - Throws: `DecodingError` where the object's class does not understand it.
    public var object: CoatyObject {
        get throws { try payload.requiredObject() }
    }

    /// Data that goes with the object for those who know it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
