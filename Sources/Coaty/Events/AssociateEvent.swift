/// Associates an IO source with an IO actor, or dissolves their association. Sent by IO routers.
public struct AssociateEvent: CommunicationEvent {
    /// `ASC`
    public static let eventType = CommunicationEventType.associate

    /// The name of the IO context.
    public let ioContextName: String
    /// `{ioSourceId, ioActorId, associatingRoute?, isExternalRoute?, updateRate?}`
    public let payload: Payload
    /// The router.
    public let sourceId: CoatyUUID?

    private struct Body: Encodable {
        let ioSourceId: CoatyUUID
        let ioActorId: CoatyUUID
        let associatingRoute: String?
        let isExternalRoute: Bool?
        let updateRate: Int?
    }

    /// Associates a source with an actor.
    ///
    /// - Parameters:
    ///   - ioContextName: the name of the IO context.
    ///   - ioSourceId: the source.
    ///   - ioActorId: the actor.
    ///   - associatingRoute: the topic that values flow on; nil dissolves the association.
    ///   - updateRate: the rate, in milliseconds, that is recommended to the source.
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)`` where the name can't stand in a topic; ``PayloadError`` where
    ///   the route is empty.
    public static func with(
        ioContextName: String,
        ioSourceId: CoatyUUID,
        ioActorId: CoatyUUID,
        associatingRoute: String?,
        updateRate: Int? = nil
    ) throws -> AssociateEvent {
        let body = Body(
            ioSourceId: ioSourceId,
            ioActorId: ioActorId,
            associatingRoute: associatingRoute,
            // Some agents in the field can't do without.
            isExternalRoute: associatingRoute.map { !RawTopic.isCoaty($0) },
            updateRate: associatingRoute == nil ? nil : updateRate
        )
        return try AssociateEvent(ioContextName: ioContextName, payload: Payload(encoding: body))
    }

    private init(ioContextName: String, payload: Payload) throws {
        guard CommunicationTopic.isPublishableLevel(ioContextName) else {
            throw CommunicationError.invalidTopicLevel(ioContextName)
        }
        try payload.check(Self.schema)
        self.ioContextName = ioContextName
        self.payload = payload
        sourceId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, topic: CommunicationTopic) throws(PayloadError) {
        try payload.check(Self.schema)
        ioContextName = topic.eventTypeFilter ?? ""
        self.payload = payload
        sourceId = topic.sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("ioSourceId", .nonEmptyString),
        .required("ioActorId", .nonEmptyString),
        .optional("associatingRoute", .nonEmptyString),
        .optional("updateRate", .number),
    ]

    /// What the event says.
    public var data: AssociateEventData { AssociateEventData(payload: payload) }
}

/// What an Associate event says.
public struct AssociateEventData: Sendable {
    let payload: Payload

    /// The source.
    public var ioSourceId: CoatyUUID { CoatyUUID(wire: payload.json["ioSourceId"]?.string ?? "") }

    /// The actor.
    public var ioActorId: CoatyUUID { CoatyUUID(wire: payload.json["ioActorId"]?.string ?? "") }

    /// The topic that values flow on; nil where the association is dissolved.
    public var associatingRoute: String? { payload.json["associatingRoute"]?.string }

    /// Whether the route is not one of Coaty's: told by the route, since agents in the field don't say it.
    public var isExternalRoute: Bool? { associatingRoute.map { !RawTopic.isCoaty($0) } }

    /// The rate that is recommended to the source, in milliseconds, rounded up to a whole one.
    public var updateRate: Int? {
        payload.json["updateRate"]?.number.flatMap { Int(exactly: $0.rounded(.up)) }
    }
}
