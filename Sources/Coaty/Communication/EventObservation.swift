/// What can be observed: an event, and the filter that its topic has.
public struct EventObservation<Event: CommunicationEvent>: Sendable {
    let filter: String?
    let isIncluded: (@Sendable (Event) -> Bool)?
    /// Lets an event be answered.
    let prepare: (@Sendable (inout Event, Responder) -> Void)?

    init(filter: String? = nil, isIncluded: (@Sendable (Event) -> Bool)? = nil) {
        self.filter = filter
        self.isIncluded = isIncluded
        prepare = nil
    }

    init(filter: String? = nil, isIncluded: (@Sendable (Event) -> Bool)? = nil) where Event: RequestEvent {
        self.filter = filter
        self.isIncluded = isIncluded
        prepare = { event, responder in event.responder = responder }
    }
}

extension CommunicationTopic {
    /// A text that is to be observed as a topic's filter.
    ///
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    fileprivate static func observableLevel(_ text: String) throws(CommunicationError) -> String {
        guard isPublishableLevel(text) else { throw .invalidTopicLevel(text) }
        return text
    }
}

/// The topic filter of objects of an object type. Those of a core type's own object type go out by core type only, so there
/// the object decides.
private struct ObjectTypeFilter: Sendable {
    let filter: String
    private let objectType: String?

    init(_ objectType: String) throws(CommunicationError) {
        if let coreType = CoreType(objectType: objectType) {
            filter = coreType.rawValue
            self.objectType = objectType
        } else {
            filter = ":" + (try CommunicationTopic.observableLevel(objectType))
            self.objectType = nil
        }
    }

    func isIncluded(_ payload: Payload) -> Bool {
        objectType.map { $0 == payload.json["object"]?["objectType"]?.string } ?? true
    }
}

extension EventObservation where Event == AdvertiseEvent {
    /// Advertised objects of a core type.
    public static func advertise(withCoreType coreType: CoreType) -> Self {
        Self(filter: coreType.rawValue)
    }

    /// Advertised objects of an object type.
    ///
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    public static func advertise(withObjectType objectType: String) throws(CommunicationError) -> Self {
        let type = try ObjectTypeFilter(objectType)
        return Self(filter: type.filter, isIncluded: { type.isIncluded($0.payload) })
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
        Self(filter: try CommunicationTopic.observableLevel(channelId))
    }
}

extension EventObservation where Event == AssociateEvent {
    /// What the IO routers of a context say.
    ///
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    public static func associate(ioContextName: String) throws(CommunicationError) -> Self {
        Self(filter: try CommunicationTopic.observableLevel(ioContextName))
    }
}

extension EventObservation where Event == DiscoverEvent {
    /// All Discover events.
    public static var discover: Self { Self() }
}

extension EventObservation where Event == QueryEvent {
    /// All Query events.
    public static var query: Self { Self() }
}

extension EventObservation where Event == UpdateEvent {
    /// Updates of objects of a core type.
    public static func update(withCoreType coreType: CoreType) -> Self {
        Self(filter: coreType.rawValue)
    }

    /// Updates of objects of an object type.
    ///
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    public static func update(withObjectType objectType: String) throws(CommunicationError) -> Self {
        let type = try ObjectTypeFilter(objectType)
        return Self(filter: type.filter, isIncluded: { type.isIncluded($0.payload) })
    }
}

extension EventObservation where Event == CallEvent {
    /// Calls of an operation.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - context: what the observer is: then only calls come whose filter matches it. As it is at this moment.
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``; `EncodingError` where the context can't be encoded.
    public static func call(operation: String, context: CoatyObject? = nil) throws -> Self {
        let filter = try CommunicationTopic.observableLevel(operation)
        guard let context else { return Self(filter: filter) }
        let view = try Payload(encoding: context).json
        return Self(filter: filter) { $0.data.isMeant(for: view) }
    }
}
