/// Asks for the objects of some types that an object filter selects.
public struct QueryEvent: RequestEvent {
    /// `QRY`
    public static let eventType = CommunicationEventType.query

    /// `{objectTypes or coreTypes, objectFilter, objectJoinConditions?}`
    public let payload: Payload
    /// Who asks.
    public let sourceId: CoatyUUID?
    /// Which request it is; nil for an event that was made here and not yet published.
    public let correlationId: CoatyUUID?
    /// Carries answers back; nil for an event that was made here.
    public var responder: Responder?

    private struct Body: Encodable {
        var objectTypes: [String]?
        var coreTypes: [CoreType]?
        let objectFilter: ObjectFilter
        let objectJoinConditions: Joins?
    }

    /// One join goes out as itself, several as a list.
    private struct Joins: Encodable {
        let conditions: [ObjectJoinCondition]

        func encode(to encoder: any Encoder) throws {
            if conditions.count == 1 {
                try conditions[0].encode(to: encoder)
            } else {
                try conditions.encode(to: encoder)
            }
        }
    }

    /// Asks for objects of the object types.
    ///
    /// - Throws: ``PayloadError`` where a type is empty.
    public static func with(
        objectTypes: [String],
        objectFilter: ObjectFilter = ObjectFilter(),
        objectJoinConditions: [ObjectJoinCondition]? = nil
    ) throws -> QueryEvent {
        let body = Body(
            objectTypes: objectTypes,
            objectFilter: objectFilter,
            objectJoinConditions: objectJoinConditions.map(Joins.init)
        )
        return try QueryEvent(payload: Payload(encoding: body))
    }

    /// Asks for objects of the core types.
    public static func with(
        coreTypes: [CoreType],
        objectFilter: ObjectFilter = ObjectFilter(),
        objectJoinConditions: [ObjectJoinCondition]? = nil
    ) throws -> QueryEvent {
        let body = Body(
            coreTypes: coreTypes,
            objectFilter: objectFilter,
            objectJoinConditions: objectJoinConditions.map(Joins.init)
        )
        return try QueryEvent(payload: Payload(encoding: body))
    }

    /// Takes a payload as it is, but for an object filter that is missing: agents in the field drop a Query without one, so
    /// an empty one goes out.
    ///
    /// - Throws: ``PayloadError`` where the payload has not exactly one of the type lists, or an invalid filter or join.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        if payload.json["objectFilter"] == nil {
            self.payload = try Payload(Array(#"{"objectFilter":{},"#.utf8) + payload.json.bytes.dropFirst())
        } else {
            self.payload = payload
        }
        sourceId = nil
        correlationId = nil
    }

    /// Takes a payload that a person wrote: operators of the object filter may be names, which go out as numbers. All other
    /// bytes stay as they are.
    ///
    /// - Throws: ``PayloadError`` as ``init(payload:)``, with the place in what the person wrote.
    package init(personal payload: Payload) throws(PayloadError) {
        try Self.check(payload, .person)
        try self.init(payload: payload.numberingOperators(of: payload.json["objectFilter"]))
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    private static func check(_ payload: Payload, _ dialect: FilterDialect = .wire) throws(PayloadError) {
        try payload.check(schema)
        let json = payload.json
        switch (json["objectTypes"], json["coreTypes"]) {
        case (nil, nil): throw .invalid(json, "must have objectTypes or coreTypes")
        case (.some, .some(let list)): throw .invalid(list, "must not stand beside objectTypes")
        default: break
        }
        if let filter = json["objectFilter"] { _ = try ObjectFilter(filter, dialect) }
        if let joins = json["objectJoinConditions"] { _ = try ObjectJoinCondition.list(joins) }
    }

    private static let schema: [PropertyRule] = [
        .optional("objectTypes", .nonEmptyStrings),
        .optional("coreTypes", .elements(.coreType)),
    ]

    /// What the event asks for.
    public var data: QueryEventData { QueryEventData(payload: payload) }

    /// None.
    public var names: [EventName?] { [nil] }

    /// Checks that the objects are of the types that are asked for.
    public func checkFits(_ response: RetrieveEvent) throws(PayloadError) {
        let asked = data
        guard let objects = response.payload.json["objects"] else { return }
        for object in objects.elements {
            try object.check("coreType", isIn: asked.coreTypes?.map(\.rawValue))
            try object.check("objectType", isIn: asked.objectTypes)
        }
    }

    /// Answers the request. Several answers are allowed.
    ///
    /// - Throws: ``PayloadError`` where the answer does not fit the request; ``CommunicationError`` where it can't be
    ///   published.
    @discardableResult
    public func retrieve(_ event: RetrieveEvent) throws -> Delivery {
        try answer(event)
    }
}

/// What a Query event asks for.
public struct QueryEventData: Sendable {
    let payload: Payload

    /// The object types; nil where core types are given.
    public var objectTypes: [String]? { payload.json["objectTypes"]?.elements.compactMap(\.string) }

    /// The core types; nil where object types are given.
    public var coreTypes: [CoreType]? { payload.json["coreTypes"]?.elements.compactMap { CoreType($0) } }

    /// Which objects are wanted, in which order, and how many.
    public var objectFilter: ObjectFilter {
        // Checked when the event was made.
        payload.json["objectFilter"].flatMap { try? ObjectFilter($0) } ?? ObjectFilter()
    }

    /// What is to be looked up beside the objects.
    public var objectJoinConditions: [ObjectJoinCondition] {
        payload.json["objectJoinConditions"].flatMap { try? ObjectJoinCondition.list($0) } ?? []
    }

    /// Whether the core type is among those that are asked for.
    public func isCoreTypeCompatible(_ coreType: CoreType) -> Bool { coreTypes?.contains(coreType) ?? false }

    /// Whether the object type is among those that are asked for.
    public func isObjectTypeCompatible(_ objectType: String) -> Bool { objectTypes?.contains(objectType) ?? false }
}
