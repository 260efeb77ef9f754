/// Delivers objects to everybody who observes a channel.
public struct ChannelEvent: CommunicationEvent {
    /// `CHN`
    public static let eventType = CommunicationEventType.channel

    /// The channel.
    public let channelId: String
    /// `{object, privateData?}` or `{objects, privateData?}`
    public let payload: Payload
    /// Who published.
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

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload has not exactly one of `object` and `objects`;
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

    /// Reads an event that came in.
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
        case (.some, .some(let objects)): throw .invalid(objects, "must not stand beside object")
        default: return
        }
    }

    private static let schema: [PropertyRule] = [
        .optional("object", .coatyObject(nil)),
        .optional("objects", .elements(.coatyObject(nil))),
        .optional("privateData", .object([])),
    ]

    /// What the event says.
    public var data: ChannelEventData { ChannelEventData(payload: payload) }
}

/// What a Channel event says.
public struct ChannelEventData: Sendable {
    let payload: Payload

    /// The object, decoded anew each time; nil where there are several.
    ///
    /// - Throws: `DecodingError` where the object's class does not understand it.
    public var object: CoatyObject? {
        get throws { try payload.object() }
    }

    /// The objects, decoded anew each time; nil where there is one.
    ///
    /// - Throws: `DecodingError` where an object's class does not understand it.
    public var objects: [CoatyObject]? {
        get throws { try payload.objects("objects") }
    }

    /// Data that goes with the objects for those who know it.
    public var privateData: [String: AnyCodable]? { payload.privateData }
}
