/// Advertises an object to everybody who is interested in its core type or object type.
public struct AdvertiseEvent: CommunicationEvent {
    /// `ADV`
    public static let eventType = CommunicationEventType.advertise

    /// `{object, privateData?}`
    public let payload: Payload
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
    public init(payload: Payload, topic: CommunicationTopic) throws(PayloadError) {
        try self.init(payload: payload, sourceId: topic.sourceId, isPublishedHere: false)
    }

    private init(payload: Payload, sourceId: CoatyUUID?, isPublishedHere: Bool) throws(PayloadError) {
        try payload.check(Self.schema)
        if let objectType = payload.json["object"]?["objectType"], let text = objectType.string {
            guard CommunicationTopic.isValidLevel(text) else {
                throw .invalid(objectType, "must not hold U+0000, #, + or /")
            }
            guard !isPublishedHere || CommunicationTopic.isPublishableLevel(text) else {
                let limit = CommunicationTopic.maximumLevelLength
                throw .invalid(objectType, "must not hold control characters, nor more than \(limit) bytes")
            }
        }
        self.payload = payload
        self.sourceId = sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("object", .coatyObject(nil)),
        .optional("privateData", .object([])),
    ]

    /// What the event says.
    public var data: AdvertiseEventData { AdvertiseEventData(payload: payload) }

    /// The topic filters that the event is published on: the core type and, unless it is the core type's own, the object
    /// type.
    var topicFilters: (coreType: String, objectType: String?) {
        let object = payload.json["object"]
        let coreType = object?["coreType"]?.string ?? ""
        let objectType = object?["objectType"]?.string ?? ""
        let isOwn = CoreType(rawValue: coreType)?.objectType == objectType
        return (coreType, isOwn ? nil : ":" + objectType)
    }
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
