import Coaty

/// How an object is related to those that a query asks for.
enum ObjectRelation: String {
    case parentObjectId, locationId

    /// Asks for the objects of a type that are related to an object.
    func query(objectType: String, relatedTo id: CoatyUUID) throws -> QueryEvent {
        let query: AnyCodable = [
            "objectTypes": [.string(objectType)],
            "objectFilter": ["conditions": [.string(rawValue), [Self.equals, AnyCodable(id)]]],
        ]
        return try QueryEvent(payload: Payload(Array(PayloadCoder.encode(query).utf8)))
    }

    /// The filter operator, as it stands on the wire.
    private static let equals: AnyCodable = 7

    /// Whether a query asks for the object: by its type and, where there are conditions, by one of its ids.
    static func matches(_ object: CoatyObject, _ query: QueryEvent) -> Bool {
        guard query.data.isObjectTypeCompatible(object.objectType) else { return false }
        guard let conditions = query.payload.json["objectFilter"]?["conditions"] else { return true }
        let ids = [
            "objectId": object.objectId, "parentObjectId": object.parentObjectId, "locationId": object.locationId,
        ]
        return ids.contains { name, id in
            id.map { AnyCodable(conditions) == [.string(name), [equals, AnyCodable($0)]] } ?? false
        }
    }
}
