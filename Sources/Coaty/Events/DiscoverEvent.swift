/// Discovers objects by external id, by object id, or by their types.
public struct DiscoverEvent: RequestEvent {
    /// `DSC`
    public static let eventType = CommunicationEventType.discover

    /// `{externalId?, objectId?, objectTypes?, coreTypes?}`
    public let payload: Payload
    /// The agent that sends the request.
    public let sourceId: CoatyUUID?
    /// The id of the request; nil for a local event that is not yet published.
    public let correlationId: CoatyUUID?
    /// Sends answers to the requester; nil for a local event.
    public var responder: Responder?

    /// Creates a request for the object with an external id.
    public static func with(externalId: String) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId))
    }

    /// Creates a request for the object with an external id and one of the core types.
    public static func with(externalId: String, coreTypes: [CoreType]) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId, coreTypes: coreTypes))
    }

    /// Creates a request for the object with an external id and one of the object types.
    public static func with(externalId: String, objectTypes: [String]) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId, objectTypes: objectTypes))
    }

    /// Creates a request for the object with an object id.
    public static func with(objectId: CoatyUUID) throws -> DiscoverEvent {
        try with(DiscoverEventData(objectId: objectId))
    }

    /// Creates a request for the object with both ids.
    public static func with(externalId: String, objectId: CoatyUUID) throws -> DiscoverEvent {
        try with(DiscoverEventData(externalId: externalId, objectId: objectId))
    }

    /// Creates a request for objects of the core types.
    public static func with(coreTypes: [CoreType]) throws -> DiscoverEvent {
        try with(DiscoverEventData(coreTypes: coreTypes))
    }

    /// Creates a request for objects of the object types.
    ///
    /// - Throws: ``PayloadError`` if a type is empty.
    public static func with(objectTypes: [String]) throws -> DiscoverEvent {
        try with(DiscoverEventData(objectTypes: objectTypes))
    }

    private static func with(_ data: DiscoverEventData) throws -> DiscoverEvent {
        try DiscoverEvent(payload: Payload(encoding: data))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` unless the payload contains exactly one of these: an external id, optionally with
    ///   type lists or an object id; an object id; exactly one type list.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = nil
        correlationId = nil
    }

    /// Decodes a received event.
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
            if let list = types.first { throw .invalid(list, "must not be combined with objectId") }
        } else if json["externalId"] == nil {
            guard let list = types.last else {
                throw .invalid(json, "must have externalId, objectId, objectTypes or coreTypes")
            }
            if types.count > 1 { throw .invalid(list, "must not be combined with objectTypes without externalId") }
        }
    }

    private static let schema: [PropertyRule] = [
        .optional("externalId", .string),
        .optional("objectId", .string),
        .optional("objectTypes", .nonEmptyStrings),
        .optional("coreTypes", .elements(.coreType)),
    ]

    /// The event's data.
    public var data: DiscoverEventData { DiscoverEventData(payload.json) }

    /// A single nil: Discover events have no names.
    public var names: [EventName?] { [nil] }

    /// Checks that the object matches the requested types and ids.
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
    /// - Throws: ``PayloadError`` if the answer does not match the request; ``CommunicationError`` if it can't be
    ///   published.
    @discardableResult
    public func resolve(_ event: ResolveEvent) throws -> Delivery {
        try answer(event)
    }
}

/// The data of a Discover event.
public struct DiscoverEventData: Encodable, Sendable, Hashable {
    /// The requested external id.
    public private(set) var externalId: String?
    /// The requested object id.
    public private(set) var objectId: CoatyUUID?
    /// The requested object types.
    public private(set) var objectTypes: [String]?
    /// The requested core types.
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

    /// Returns whether an external id but no object id is requested.
    public func isDiscoveringExternalId() -> Bool { externalId != nil && objectId == nil }

    /// Returns whether an object id but no external id is requested.
    public func isDiscoveringObjectId() -> Bool { externalId == nil && objectId != nil }

    /// Returns whether both ids are requested.
    public func isDiscoveringExternalAndObjectId() -> Bool { externalId != nil && objectId != nil }

    /// Returns whether types but no ids are requested.
    public func isDiscoveringTypes() -> Bool { externalId == nil && objectId == nil }

    /// Returns whether the core type is one of the requested types.
    public func isCoreTypeCompatible(_ coreType: CoreType) -> Bool { coreTypes?.contains(coreType) ?? false }

    /// Returns whether the object type is one of the requested types.
    public func isObjectTypeCompatible(_ objectType: String) -> Bool { objectTypes?.contains(objectType) ?? false }
}
