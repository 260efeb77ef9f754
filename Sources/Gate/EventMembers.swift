import Coaty

/// The members of the payloads that clients publish (Coaty communication events specification).
///
/// Others are refused: agents would ignore a misspelled one without a word. Members of objects are free.
enum EventMembers {
    private static let one: Set = ["object", "privateData"]

    private static let members: [CommunicationEventType: Set<String>] = [
        .advertise: one,
        .deadvertise: ["objectIds"],
        .channel: ["object", "objects", "privateData"],
        .discover: ["externalId", "objectId", "objectTypes", "coreTypes"],
        .resolve: ["object", "relatedObjects", "privateData"],
        .query: ["objectTypes", "coreTypes", "objectFilter", "objectJoinConditions"],
        .retrieve: ["objects", "privateData"],
        .update: ["object"],
        .complete: one,
        .call: ["parameters", "filter"],
        .return: ["result", "error", "executionInfo"],
    ]

    /// Those of an Advertise event with a lifetime, which the gateway reads and does not publish.
    private static let lasting = one.union(["lifetime"])

    /// Returns a payload if it has no other members.
    ///
    /// - Parameter hasLifetime: whether the client may state the lifetime of the object beside it.
    /// - Throws: the first unknown member, and the nearest known one.
    static func checked(
        _ payload: Payload,
        as type: CommunicationEventType,
        hasLifetime: Bool = false
    ) throws(PayloadError) -> Payload {
        if let known = hasLifetime ? lasting : members[type] { try payload.json.refuseMembers(besides: known) }
        return payload
    }
}
