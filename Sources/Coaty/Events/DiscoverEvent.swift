/// Asks for objects by external id, by object id, or by their types.
public struct DiscoverEvent: RequestEvent {
    /// `DSC`
    public static let eventType = CommunicationEventType.discover

    /// `{externalId?, objectId?, objectTypes?, coreTypes?}`
    public let payload: Payload
    /// Who asks.
    public let sourceId: CoatyUUID?
    /// Which request it is; nil for an event that was made here and not yet published.
    public let correlationId: CoatyUUID?
    /// Carries answers back; nil for an event that was made here.
    public var responder: Responder?

    /// Asks for the object of an external id.
    public static func with(externalId: String) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId))
    }

    /// Asks for the object of an external id that is of one of the core types.
    public static func with(externalId: String, coreTypes: [CoreType]) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId, coreTypes: coreTypes))
    }

    /// Asks for the object of an external id that is of one of the object types.
    public static func with(externalId: String, objectTypes: [String]) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId, objectTypes: objectTypes))
    }

    /// Asks for the object of an object id.
    public static func with(objectId: CoatyUUID) throws -> DiscoverEvent {
        try with(DiscoverEventData(objectId: objectId))
    }

    /// Asks for the object of both ids.
    public static func with(externalId: String, objectId: CoatyUUID) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId, objectId: objectId))
    }

    /// Asks for objects of the core types.
    public static func with(coreTypes: [CoreType]) throws -> DiscoverEvent {
        try with(DiscoverEventData(coreTypes: coreTypes))
    }

    /// Asks for objects of the object types.
    ///
    /// - Throws: ``PayloadError`` where a type is empty.
    public static func with(objectTypes: [String]) throws -> DiscoverEvent {
        try with(DiscoverEventData(objectTypes: objectTypes))
    }

    private static func with(_ data: DiscoverEventData) throws -> DiscoverEvent {
        try DiscoverEvent(payload: Payload(encoding: data))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload asks by anything but: the external id, alone, with type lists or with the
    ///   object id; the object id; exactly one of the type lists.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = nil
        correlationId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    private static func check(_ payload: Payload) throws(PayloadError) {
        try payload.check(schema)
        let json = payload.json
        let types = [json["objectTypes"], json["coreTypes"]].compactMap(\.self)
        if json["objectId"] != nil {
            if let list = types.first { throw .invalid(list, "must not stand beside objectId") }
        } else if json["externalId"] == nil {
            guard let list = types.last else {
                throw .invalid(json, "must have externalId, objectId, objectTypes or coreTypes")
            }
            if types.count > 1 { throw .invalid(list, "must not stand beside objectTypes without externalId") }
        }
    }

    private static let schema: [PropertyRule] = [
        .optional("externalId", .string),
        .optional("objectId", .string),
        .optional("objectTypes", .nonEmptyStrings),
        .optional("coreTypes", .elements(.coreType)),
    ]

    /// What the event asks for.
    public var data: DiscoverEventData { DiscoverEventData(payload.json) }

    /// None.
    public var names: [EventName?] { [nil] }

    /// Checks that the object is of the types and ids that are asked for.
    public func checkFits(_ response: ResolveEvent) throws(PayloadError) {
        guard let object = response.payload.json["object"] else { return }
        let asked = data
        try object.check("coreType", isIn: asked.coreTypes?.map(\.rawValue))
        try object.check("objectType", isIn: asked.objectTypes)
        try object.check("objectId", isIn: asked.objectId.flatMap { $0.string.isEmpty ? nil : [$0.string] })
        try object.check("externalId", isIn: asked.externalId.flatMap { $0.isEmpty ? nil : [$0] })
    }

    /// Answers the request. Several answers are allowed.
    ///
    /// - Throws: ``PayloadError`` where the answer does not fit the request; ``CommunicationError`` where it can't be
    ///   published.
    @discardableResult
    public func resolve(_ event: ResolveEvent) throws -> Delivery {
        try answer(event)
    }
}

/// What a Discover event asks for.
public struct DiscoverEventData: Encodable, Sendable, Hashable {
    /// The external id that is looked for.
    public private(set) var externalId: String?
    /// The object id that is looked for.
    public private(set) var objectId: CoatyUUID?
    /// The object types that are looked for.
    public private(set) var objectTypes: [String]?
    /// The core types that are looked for.
    public private(set) var coreTypes: [CoreType]?

    init(
        externalId: String? = nil,
        objectId: CoatyUUID? = nil,
        objectTypes: [String]? = nil,
        coreTypes: [CoreType]? = nil
    ) {
        self.externalId = externalId
        self.objectId = objectId
        self.objectTypes = objectTypes
        self.coreTypes = coreTypes
    }

    init(_ json: JSONView) {
        externalId = json["externalId"]?.string
        objectId = json["objectId"]?.string.map(CoatyUUID.init(wire:))
        objectTypes = json["objectTypes"]?.elements.compactMap(\.string)
        coreTypes = json["coreTypes"]?.elements.compactMap { CoreType($0) }
    }

    /// Whether an external id is looked for, and no object id.
    public func isDiscoveringExternalId() -> Bool { externalId != nil && objectId == nil }

    /// Whether an object id is looked for, and no external id.
    public func isDiscoveringObjectId() -> Bool { externalId == nil && objectId != nil }

    /// Whether both ids are looked for.
    public func isDiscoveringExternalAndObjectId() -> Bool { externalId != nil && objectId != nil }

    /// Whether types are looked for, and no ids.
    public func isDiscoveringTypes() -> Bool { externalId == nil && objectId == nil }

    /// Whether the core type is among those that are looked for.
    public func isCoreTypeCompatible(_ coreType: CoreType) -> Bool { coreTypes?.contains(coreType) ?? false }

    /// Whether the object type is among those that are looked for.
    public func isObjectTypeCompatible(_ objectType: String) -> Bool { objectTypes?.contains(objectType) ?? false }
}
