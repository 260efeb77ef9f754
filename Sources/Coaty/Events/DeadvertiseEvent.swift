/// Reports that objects or agents no longer exist.
public struct DeadvertiseEvent: CommunicationEvent {
    /// `DAD`
    public static let eventType = CommunicationEventType.deadvertise

    /// `{objectIds}`
    public let payload: Payload
    /// The agent that deadvertised.
    public let sourceId: CoatyUUID?

    /// Creates an event that deadvertises objects.
    ///
    /// - Throws: ``PayloadError`` if an id is empty.
    public static func with(objectIds: CoatyUUID...) throws -> DeadvertiseEvent {
        try with(objectIds: objectIds)
    }

    /// Creates an event that deadvertises objects.
    ///
    /// - Throws: ``PayloadError`` if an id is empty.
    public static func with(objectIds: [CoatyUUID]) throws -> DeadvertiseEvent {
        try DeadvertiseEvent(payload: Payload(encoding: ["objectIds": objectIds]))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is not `{objectIds: [id…]}`.
    public init(payload: Payload) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = nil
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        self.payload = payload
        sourceId = address.sourceId
    }

    private static let schema: [PropertyRule] = [.required("objectIds", .nonEmptyStrings)]

    /// The event's data.
    public var data: DeadvertiseEventData { DeadvertiseEventData(payload: payload) }
}

/// The data of a Deadvertise event.
public struct DeadvertiseEventData: Sendable {
    let payload: Payload

    package init(payload: Payload) { self.payload = payload }

    /// The ids of the deadvertised objects.
    public var objectIds: [CoatyUUID] { elements.compactMap { $0.string.map(CoatyUUID.init(wire:)) } }

    /// The number of ids.
    public var count: Int { list.map { $0.valueCount - 1 } ?? 0 }

    /// Returns the known ids, in their order, and possibly others: an event may contain a million unknown ids.
    ///
    /// - Parameters:
    ///   - known: the number of known ids. A filter takes about as much time as looking up the same number of ids.
    ///   - filter: returns a filter for the known ids; called if the event contains more ids.
    package func objectIds(among known: Int, _ filter: () -> NameFilter) -> [CoatyUUID] {
        guard count > known else { return objectIds }
        let filter = filter()
        return elements.compactMap { id in filter.mayContain(id) ? id.string.map(CoatyUUID.init(wire:)) : nil }
    }

    private var list: JSONView? { payload.json["objectIds"] }

    private var elements: some Sequence<JSONView> {
        list?.elements ?? JSONView.Elements(document: payload.json.document, index: 0, end: 0)
    }
}
