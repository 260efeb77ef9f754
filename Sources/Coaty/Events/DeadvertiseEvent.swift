/// Tells that objects, or agents, are no longer there.
public struct DeadvertiseEvent: CommunicationEvent {
    /// `DAD`
    public static let eventType = CommunicationEventType.deadvertise

    /// `{objectIds}`
    public let payload: Payload
    /// Who deadvertised.
    public let sourceId: CoatyUUID?

    /// Creates an event that deadvertises objects.
    ///
    /// - Throws: ``PayloadError`` where an id is empty.
    public static func with(objectIds: CoatyUUID...) throws -> DeadvertiseEvent {
        try with(objectIds: objectIds)
    }

    /// Creates an event that deadvertises objects.
    ///
    /// - Throws: ``PayloadError`` where an id is empty.
    public static func with(objectIds: [CoatyUUID]) throws -> DeadvertiseEvent {
        try DeadvertiseEvent(payload: Payload(encoding: ["objectIds": objectIds]))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload is not `{objectIds: [id…]}`.
    public init(payload: Payload) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = address.sourceId
    }

    private static let schema: [PropertyRule] = [.required("objectIds", .nonEmptyStrings)]

    /// What the event says.
    public var data: DeadvertiseEventData { DeadvertiseEventData(payload: payload) }
}

/// What a Deadvertise event says.
public struct DeadvertiseEventData: Sendable {
    let payload: Payload

    /// The ids of the objects that are gone.
    public var objectIds: [CoatyUUID] {
        payload.json["objectIds"]?.elements.compactMap { $0.string.map(CoatyUUID.init(wire:)) } ?? []
    }
}
