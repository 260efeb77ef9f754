/// What can be observed: the events of a pattern with a name.
public struct EventObservation<Event: CommunicationEvent>: Sendable {
    let name: EventName?
    let isIncluded: (@Sendable (Event) -> Bool)?
    /// Makes an event answerable.
    let prepare: (@Sendable (inout Event, Responder) -> Void)?

    init(name: EventName? = nil, isIncluded: (@Sendable (Event) -> Bool)? = nil) {
        self.name = name
        self.isIncluded = isIncluded
        prepare = nil
    }

    init(name: EventName? = nil, isIncluded: (@Sendable (Event) -> Bool)? = nil) where Event: RequestEvent {
        self.name = name
        self.isIncluded = isIncluded
        prepare = { event, responder in event.responder = responder }
    }
}

extension WireName {
    /// A name that is to be observed.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    fileprivate static func observable(_ text: String) throws(CommunicationError) -> WireName {
        guard isPublishable(text) else { throw .invalidName(text) }
        return WireName(text)
    }
}

extension CoreType {
    fileprivate var name: EventName { .coreType(WireName(rawValue)) }
}

/// Selects objects of an object type. Those of a core type's own object type are published by core type only, so the object
/// decides there.
private struct ObjectTypeSelection: Sendable {
    let name: EventName
    private let objectType: String?

    init(_ objectType: String) throws(CommunicationError) {
        if let coreType = CoreType(objectType: objectType) {
            name = coreType.name
            self.objectType = objectType
        } else {
            name = .objectType(try WireName.observable(objectType))
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
        Self(name: coreType.name)
    }

    /// Advertised objects of an object type.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public static func advertise(withObjectType objectType: String) throws(CommunicationError) -> Self {
        let type = try ObjectTypeSelection(objectType)
        return Self(name: type.name, isIncluded: { type.isIncluded($0.payload) })
    }
}

extension EventObservation where Event == DeadvertiseEvent {
    /// All Deadvertise events.
    public static var deadvertise: Self { Self() }
}

extension EventObservation where Event == ChannelEvent {
    /// What is delivered through a channel.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public static func channel(_ channelId: String) throws(CommunicationError) -> Self {
        Self(name: .name(try WireName.observable(channelId)))
    }
}

extension EventObservation where Event == AssociateEvent {
    /// What the IO routers of a context say.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public static func associate(ioContextName: String) throws(CommunicationError) -> Self {
        Self(name: .name(try WireName.observable(ioContextName)))
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
        Self(name: coreType.name)
    }

    /// Updates of objects of an object type.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public static func update(withObjectType objectType: String) throws(CommunicationError) -> Self {
        let type = try ObjectTypeSelection(objectType)
        return Self(name: type.name, isIncluded: { type.isIncluded($0.payload) })
    }
}

extension EventObservation where Event == CallEvent {
    /// Calls of an operation.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - context: what the observer is: then only calls come whose filter matches it. As it is at this moment.
    /// - Throws: ``CommunicationError/invalidName(_:)``; `EncodingError` where the context can't be encoded.
    public static func call(operation: String, context: CoatyObject? = nil) throws -> Self {
        let name = EventName.name(try WireName.observable(operation))
        guard let context else { return Self(name: name) }
        let view = try Payload(encoding: context).json
        return Self(name: name) { $0.data.isMeant(for: view) }
    }
}
