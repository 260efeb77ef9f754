/// Delivers objects to all observers of a channel.
public struct ChannelEvent: CommunicationEvent {
    /// `CHN`
    public static let eventType = CommunicationEventType.channel

    /// The channel.
    public let channelId: String
    /// `{object, privateData?}` or `{objects, privateData?}`
    public let payload: Payload
    /// The agent that published.
    public let sourceId: CoatyUUID?

    /// Creates an event that delivers one object.
    ///
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidName(_:)``
    public static func with(
        object: CoatyObject,
        channelId: String,
        privateData: [String: AnyCodable]? = nil
    ) throws -> ChannelEvent {
        try ChannelEvent(
            channelId: channelId,
            payload: Payload(encoding: ObjectBody(object: object, privateData: privateData))
        )
    }

    /// Creates an event that delivers several objects.
    ///
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidName(_:)``
    public static func with(
        objects: [CoatyObject],
        channelId: String,
        privateData: [String: AnyCodable]? = nil
    ) throws -> ChannelEvent {
        try ChannelEvent(
            channelId: channelId,
            payload: Payload(encoding: ObjectBody(objects: objects, privateData: privateData))
        )
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload does not have exactly one of `object` and `objects`;
    ///   ``CommunicationError/invalidName(_:)`` if the channel id is not a valid name.
    public init(channelId: String, payload: Payload) throws {
        guard WireName.isPublishable(channelId) else {
            throw CommunicationError.invalidName(channelId)
        }
        try Self.check(payload)
        self.channelId = channelId
        self.payload = payload
        sourceId = nil
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try Self.check(payload)
        channelId = address.name?.text ?? ""
        self.payload = payload
        sourceId = address.sourceId
    }

    private static func check(_ payload: Payload) throws(PayloadError) {
        try payload.check(schema)
        switch (payload.json["object"], payload.json["objects"]) {
        case (nil, nil): throw .missing("object", in: payload.json)
        case (.some, .some(let objects)): throw .invalid(objects, "must not be combined with object")
        default: return
        }
    }

    private static let schema: [PropertyRule] = [
        .optional("object", .coatyObject(nil)),
        .optional("objects", .elements(.coatyObject(nil))),
        .optional("privateData", .object([])),
    ]

    /// The event's data.
    public var data: ChannelEventData { ChannelEventData(payload: payload) }
}

/// The data of a Channel event.
public struct ChannelEventData: Sendable {
    let payload: Payload

    /// The object, decoded on each access; nil if there are several.
    ///
    /// - Throws: `DecodingError` if the object's class can't decode it.
    public var object: CoatyObject? {
        get throws { try payload.object() }
    }

    /// The objects, decoded on each access; nil if there is only one.
    ///
    /// - Throws: `DecodingError` if an object's class can't decode it.
    public var objects: [CoatyObject]? {
        get throws { try payload.objects("objects") }
    }

    /// Additional data for observers that understand it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
