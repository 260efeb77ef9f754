/// The events of a pattern with a name, as they can be observed.
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
    /// Returns a name that can be observed.
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

/// Selects objects of an object type. Objects with the core type's default object type are published by core type only,
/// so the object type is compared with the object.
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
    /// Selects the advertised objects of a core type.
    public static func advertise(withCoreType coreType: CoreType) -> Self {
        Self(name: coreType.name)
    }

    /// Selects the advertised objects of an object type.
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
    /// Selects all events of a channel.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public static func channel(_ channelId: String) throws(CommunicationError) -> Self {
        Self(name: .name(try WireName.observable(channelId)))
    }
}

extension EventObservation where Event == AssociateEvent {
    /// Selects all Associate events of an IO context.
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
    /// Selects the updates of objects of a core type.
    public static func update(withCoreType coreType: CoreType) -> Self {
        Self(name: coreType.name)
    }

    /// Selects the updates of objects of an object type.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public static func update(withObjectType objectType: String) throws(CommunicationError) -> Self {
        let type = try ObjectTypeSelection(objectType)
        return Self(name: type.name, isIncluded: { type.isIncluded($0.payload) })
    }
}

extension EventObservation where Event == CallEvent {
    /// Selects the calls of an operation.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - context: an object that describes the observer: only calls whose filter matches it are delivered. The object
    ///     is copied at this moment.
    /// - Throws: ``CommunicationError/invalidName(_:)``; `EncodingError` if the context can't be encoded.
    public static func call(operation: String, context: CoatyObject? = nil) throws -> Self {
        let name = EventName.name(try WireName.observable(operation))
        guard let context else { return Self(name: name) }
        let view = try Payload(encoding: context).json
        return Self(name: name) { $0.data.isMeant(for: view) }
    }
}
