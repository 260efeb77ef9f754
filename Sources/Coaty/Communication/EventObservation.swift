/// What can be observed: an event, and the filter that its topic has.
public struct EventObservation<Event: CommunicationEvent>: Sendable {
    let filter: String?
    let isIncluded: (@Sendable (Event) -> Bool)?

    init(filter: String? = nil, isIncluded: (@Sendable (Event) -> Bool)? = nil) {
        self.filter = filter
        self.isIncluded = isIncluded
    }
}

extension EventObservation where Event == AdvertiseEvent {
    /// Advertised objects of a core type.
    public static func advertise(withCoreType coreType: CoreType) -> Self {
        Self(filter: coreType.rawValue)
    }

    /// Advertised objects of an object type.
    ///
    /// Objects of a core type's own object type are advertised by core type only, so there the object decides.
    ///
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    public static func advertise(withObjectType objectType: String) throws(CommunicationError) -> Self {
        if let coreType = CoreType(objectType: objectType) {
            return Self(filter: coreType.rawValue) { event in
                event.payload.json["object"]?["objectType"]?.string == objectType
            }
        }
        guard CommunicationTopic.isPublishableLevel(objectType) else { throw .invalidTopicLevel(objectType) }
        return Self(filter: ":" + objectType)
    }
}

extension EventObservation where Event == DeadvertiseEvent {
    /// All Deadvertise events.
    public static var deadvertise: Self { Self() }
}

extension EventObservation where Event == ChannelEvent {
    /// What is delivered through a channel.
    ///
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    public static func channel(_ channelId: String) throws(CommunicationError) -> Self {
        guard CommunicationTopic.isPublishableLevel(channelId) else { throw .invalidTopicLevel(channelId) }
        return Self(filter: channelId)
    }
}

extension EventObservation where Event == DiscoverEvent {
    /// All Discover events.
    public static var discover: Self { Self() }
}
