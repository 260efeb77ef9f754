extension QueryEvent {
    /// Maximum number of join conditions that ``answer(from:related:)`` applies.
    public static let maximumJoins = 16

    /// Returns the answer of an agent that has some objects, as a database would give it: the objects of the requested
    /// types that match the filter, ordered and limited by it, each with the related objects of the join conditions.
    ///
    /// A join condition looks up the objects whose object id is the value of the local property, or one of its elements
    /// if it is an array, and adds them in the order of the ids. Ids without an object are skipped. A one-to-one
    /// relation adds the first object, or no property if there is none.
    ///
    /// - Parameters:
    ///   - objects: all objects of the agent. They are not changed.
    ///   - related: the objects that are looked up; the agent's own objects by default.
    /// - Returns: nil if no object matches, because an empty answer would count as that of an agent with such objects.
    /// - Throws: ``PayloadError`` if there are more than ``maximumJoins``, or one would replace a property of all
    ///   objects; `EncodingError` if JSON can't represent an object.
    public func answer(from objects: [CoatyObject], related: [CoatyObject]? = nil) throws -> RetrieveEvent? {
        let joins = data.objectJoinConditions
        guard joins.count <= Self.maximumJoins else {
            throw PayloadError.invalid(
                pointer: "/objectJoinConditions",
                reason: "must not have more than \(Self.maximumJoins) elements"
            )
        }
        if let join = joins.first(where: { ObjectCore.propertyNames.contains($0.asProperty) }) {
            throw PayloadError.invalid(
                pointer: "/objectJoinConditions",
                reason: "asProperty must not be \(join.asProperty), which all objects have"
            )
        }
        let candidates = objects.filter {
            data.isObjectTypeCompatible($0.objectType) || data.isCoreTypeCompatible($0.coreType)
        }
        let found = try ObjectMatcher.objects(candidates, matching: data.objectFilter)
        guard !found.isEmpty else { return nil }
        guard !joins.isEmpty else { return try .with(objects: found) }
        let pool = Dictionary((related ?? objects).map { ($0.objectId, $0) }, uniquingKeysWith: { first, _ in first })
        var encoded: [CoatyUUID: AnyCodable] = [:]
        /// Encodes each related object once.
        func object(_ id: AnyCodable) throws -> AnyCodable? {
            guard case .string(let text) = id, let object = pool[CoatyUUID(wire: text)] else { return nil }
            if let known = encoded[object.objectId] { return known }
            let json = AnyCodable(try JSONDocument(encoding: object).root)
            encoded[object.objectId] = json
            return json
        }
        let joined = try found.map { found in
            guard case .object(var members) = AnyCodable(try JSONDocument(encoding: found).root) else {
                return AnyCodable.null
            }
            for join in joins {
                let value = members[join.localProperty] ?? .null
                let ids = if case .array(let ids) = value, join.isLocalPropertyArray == true { ids } else { [value] }
                let related = try ids.compactMap(object)
                members[join.asProperty] = join.isOneToOneRelation == true ? related.first : .array(related)
            }
            return .object(members)
        }
        return try RetrieveEvent(payload: Payload(encoding: ["objects": joined]))
    }
}
