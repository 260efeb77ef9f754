/// Advertises an object to all observers of its core type or object type.
public struct AdvertiseEvent: CommunicationEvent {
    /// `ADV`
    public static let eventType = CommunicationEventType.advertise

    /// `{object, privateData?}`
    public let payload: Payload
    /// The identifying properties of the object, read without decoding it.
    public let header: ObjectHeader
    /// The agent that advertised.
    public let sourceId: CoatyUUID?

    /// Creates an event that advertises an object.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if the object can't be advertised.
    public static func with(object: CoatyObject, privateData: [String: AnyCodable]? = nil) throws -> AdvertiseEvent {
        try AdvertiseEvent(payload: Payload(encoding: ObjectBody(object: object, privateData: privateData)))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is not `{object, privateData?}` with an object whose type is valid in
    ///   a topic.
    public init(payload: Payload) throws(PayloadError) {
        try self.init(payload: payload, sourceId: nil, isPublishedHere: true)
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try self.init(payload: payload, sourceId: address.sourceId, isPublishedHere: false)
    }

    private init(payload: Payload, sourceId: CoatyUUID?, isPublishedHere: Bool) throws(PayloadError) {
        try payload.check(Self.schema)
        header = try ObjectHeader(of: payload, isPublishedHere: isPublishedHere)
        self.payload = payload
        self.sourceId = sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("object", .coatyObject(nil)),
        .optional("privateData", .object([])),
    ]

    /// The event's data.
    public var data: AdvertiseEventData { AdvertiseEventData(payload: payload) }
}

/// The data of an Advertise event.
public struct AdvertiseEventData: Sendable {
    let payload: Payload

    /// The object, decoded on each access: store it.
    ///
    /// - Throws: `DecodingError` if the object's class can't decode it.
    public var object: CoatyObject {
        get throws { try payload.requiredObject() }
    }

    /// Additional data for observers that understand it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
