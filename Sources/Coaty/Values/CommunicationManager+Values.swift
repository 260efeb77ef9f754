/// The payload of events that contain a value.
private struct ValueBody<Content: CoatyContent>: Encodable {
    let object: CoatyValue<Content>
    let privateData: [String: AnyCodable]?
}

extension AdvertiseEvent {
    /// Creates an event that advertises an object.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if the object can't be advertised.
    public static func with<Content>(
        object: CoatyValue<Content>,
        privateData: [String: AnyCodable]? = nil
    ) throws -> AdvertiseEvent {
        try AdvertiseEvent(payload: Payload(encoding: ValueBody(object: object, privateData: privateData)))
    }
}

extension ChannelEvent {
    /// Creates an event that delivers an object.
    ///
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidName(_:)``
    public static func with<Content>(
        object: CoatyValue<Content>,
        channelId: String,
        privateData: [String: AnyCodable]? = nil
    ) throws -> ChannelEvent {
        try ChannelEvent(
            channelId: channelId,
            payload: Payload(encoding: ValueBody(object: object, privateData: privateData))
        )
    }
}

extension ResolveEvent {
    /// Creates an answer with an object.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if the object is not valid.
    public static func with<Content>(
        object: CoatyValue<Content>,
        privateData: [String: AnyCodable]? = nil
    ) throws -> ResolveEvent {
        try ResolveEvent(payload: Payload(encoding: ValueBody(object: object, privateData: privateData)))
    }
}

extension CommunicationManager {
    /// Returns the objects of a type that are advertised.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func advertised<Content: CoatyContent>(
        _ type: Content.Type = Content.self
    ) throws(CommunicationError) -> ValueStream<AdvertiseEvent, Content> {
        values(of: try .advertise(withObjectType: Content.objectType))
    }

    /// Returns the objects of a type on a channel. Objects of other types are skipped, and so are lists of objects.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func objects<Content: CoatyContent>(
        _ type: Content.Type = Content.self,
        onChannel channelId: String
    ) throws(CommunicationError) -> ValueStream<ChannelEvent, Content> {
        values(of: try .channel(channelId))
    }

    /// Asks for the objects of a type, and returns those in the answers as they arrive. The request lasts as in
    /// ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``; ``PayloadError`` if the type is empty.
    public func discover<Content: CoatyContent>(
        _ type: Content.Type = Content.self,
        timeLimit: Duration? = nil
    ) throws -> ValueStream<ResolveEvent, Content> {
        let event = try DiscoverEvent.with(objectTypes: [Content.objectType])
        return ValueStream(try publishDiscover(event, timeLimit: timeLimit), logger)
    }

    private func values<Event: CommunicationEvent, Content>(
        of observation: EventObservation<Event>
    ) -> ValueStream<Event, Content> {
        let events = stream(size: { (event: Event) in event.payload.footprint }) { (onEnd, handler) throws(Never) in
            let subscription = subscribe(
                observation,
                onStatus: { if $0 == .refused { onEnd(.refused) } },
                onEnd: { onEnd(.stopped) },
                handler: handler
            )
            return { subscription.cancel() }
        }
        return ValueStream(events, logger)
    }
}
