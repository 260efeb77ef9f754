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

    /// Checks the members of a payload.
    ///
    /// - Parameter others: further members, which the gateway reads and does not publish.
    /// - Throws: the first unknown member, and the nearest known one.
    static func check(
        _ payload: Payload,
        of type: CommunicationEventType,
        besides others: Set<String> = []
    ) throws(PayloadError) {
        guard let known = members[type] else { return }
        try payload.json.refuseMembers(besides: others.isEmpty ? known : known.union(others))
    }
}
