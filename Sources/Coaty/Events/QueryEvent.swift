/// Requests the objects of some types that match an object filter.
public struct QueryEvent: RequestEvent {
    /// `QRY`
    public static let eventType = CommunicationEventType.query

    /// `{objectTypes or coreTypes, objectFilter, objectJoinConditions?}`
    public var payload: Payload { data.payload }
    /// The event's data.
    public let data: QueryEventData
    /// The agent that sends the request.
    public let sourceId: CoatyUUID?
    /// The id of the request; nil for a local event that is not yet published.
    public let correlationId: CoatyUUID?
    /// Sends answers to the requester; nil for a local event.
    public var responder: Responder?

    private struct Body: Encodable {
        var objectTypes: [String]?
        var coreTypes: [CoreType]?
        let objectFilter: ObjectFilter
        let objectJoinConditions: Joins?
    }

    /// One join is encoded as an object, several as a list.
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

    /// Creates a request for objects of the object types.
    ///
    /// - Throws: ``PayloadError`` if a type is empty.
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

    /// Creates a request for objects of the core types.
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

    /// Creates an event with an unchanged payload, except that a missing object filter is replaced by an empty one:
    /// some existing agents drop a Query event without a filter.
    ///
    /// - Throws: ``PayloadError`` if the payload does not have exactly one type list, or has an invalid filter or join.
    public init(payload: Payload) throws(PayloadError) {
        var data = try QueryEventData(payload)
        if payload.json["objectFilter"] == nil {
            data.payload = try Payload(Array(#"{"objectFilter":{},"#.utf8) + payload.json.bytes.dropFirst())
        }
        self.data = data
        sourceId = nil
        correlationId = nil
    }

    /// Creates an event from a payload that a person wrote: operators of the object filter may be names, which are sent
    /// as numbers. All other bytes stay unchanged.
    ///
    /// - Throws: ``PayloadError`` as ``init(payload:)``, with a place in the original text.
    package init(personal payload: Payload) throws(PayloadError) {
        _ = try QueryEventData(payload, .person)
        try self.init(payload: payload.numberingOperators(of: payload.json["objectFilter"]))
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        data = try QueryEventData(payload)
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    /// A single nil: Query events have no names.
    public var names: [EventName?] { [nil] }

    /// Checks that the objects match the requested types.
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
    /// - Throws: ``PayloadError`` if the answer does not match the request; ``CommunicationError`` if it can't be
    ///   published.
    @discardableResult
    public func retrieve(_ event: RetrieveEvent) throws -> Delivery {
        try answer(event)
    }
}

/// The data of a Query event.
public struct QueryEventData: Sendable {
    fileprivate(set) var payload: Payload
    /// The condition on the requested objects, their order and their maximum number.
    public let objectFilter: ObjectFilter
    /// The related objects to look up for each object.
    public let objectJoinConditions: [ObjectJoinCondition]

    /// Checks the payload of an event.
    fileprivate init(_ payload: Payload, _ dialect: FilterDialect = .wire) throws(PayloadError) {
        try payload.check(Self.schema)
        let json = payload.json
        switch (json["objectTypes"], json["coreTypes"]) {
        case (nil, nil): throw .invalid(json, "must have objectTypes or coreTypes")
        case (.some, .some(let list)): throw .invalid(list, "must not be combined with objectTypes")
        default: break
        }
        self.payload = payload
        objectFilter = if let filter = json["objectFilter"] { try .init(filter, dialect) } else { ObjectFilter() }
        objectJoinConditions =
            if let joins = json["objectJoinConditions"] { try ObjectJoinCondition.list(joins) } else { [] }
    }

    private static let schema: [PropertyRule] = [
        .optional("objectTypes", .nonEmptyStrings),
        .optional("coreTypes", .elements(.coreType)),
    ]

    /// The object types; nil if core types are given.
    public var objectTypes: [String]? { payload.json["objectTypes"]?.elements.compactMap(\.string) }

    /// The core types; nil if object types are given.
    public var coreTypes: [CoreType]? { payload.json["coreTypes"]?.elements.compactMap { CoreType($0) } }

    /// Returns whether the core type is one of the requested types.
    public func isCoreTypeCompatible(_ coreType: CoreType) -> Bool { coreTypes?.contains(coreType) ?? false }

    /// Returns whether the object type is one of the requested types.
    public func isObjectTypeCompatible(_ objectType: String) -> Bool { objectTypes?.contains(objectType) ?? false }
}
