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

    package init(payload: Payload) { self.payload = payload }

    /// The ids of the objects that are gone.
    public var objectIds: [CoatyUUID] { elements.compactMap { $0.string.map(CoatyUUID.init(wire:)) } }

    /// The number of ids.
    public var count: Int { list.map { $0.valueCount - 1 } ?? 0 }

    /// Returns the ids that are known, in their order, and possibly others: an event may have a million ids that nobody knows.
    ///
    /// - Parameters:
    ///   - known: the number of known ids. A filter takes about as much time as looking up as many ids.
    ///   - filter: returns a filter for the known ids; called if the event has more ids.
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
