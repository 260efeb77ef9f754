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

    /// Creates an event that associates a source with an actor.
    ///
    /// - Parameters:
    ///   - ioContextName: the name of the IO context.
    ///   - ioSourceId: the source.
    ///   - ioActorId: the actor.
    ///   - associatingRoute: the route of the values; nil dissolves the association.
    ///   - isExternalRoute: whether it is the source's external route rather than one that a binding has made.
    ///   - updateRate: the rate, in milliseconds, that is recommended to the source.
    /// - Throws: ``CommunicationError/invalidName(_:)`` if the name is not valid; ``PayloadError`` if the route is
    ///   empty.
    public static func with(
        ioContextName: String,
        ioSourceId: CoatyUUID,
        ioActorId: CoatyUUID,
        associatingRoute: String?,
        isExternalRoute: Bool = false,
        updateRate: Int? = nil
    ) throws -> AssociateEvent {
        let body = Body(
            ioSourceId: ioSourceId,
            ioActorId: ioActorId,
            associatingRoute: associatingRoute,
            // Some existing agents require this property.
            isExternalRoute: associatingRoute.map { _ in isExternalRoute },
            updateRate: associatingRoute == nil ? nil : updateRate
        )
        return try AssociateEvent(ioContextName: ioContextName, payload: Payload(encoding: body))
    }

    private init(ioContextName: String, payload: Payload) throws {
        guard WireName.isPublishable(ioContextName) else {
            throw CommunicationError.invalidName(ioContextName)
        }
        try payload.check(Self.schema)
        self.ioContextName = ioContextName
        self.payload = payload
        sourceId = nil
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        ioContextName = address.name?.text ?? ""
        self.payload = payload
        sourceId = address.sourceId
    }

    private static let schema: [PropertyRule] = [
        .required("ioSourceId", .nonEmptyString),
        .required("ioActorId", .nonEmptyString),
        .optional("associatingRoute", .nonEmptyString),
        .optional("updateRate", .number),
    ]

    /// The event's data.
    public var data: AssociateEventData { AssociateEventData(payload: payload) }
}

/// The data of an Associate event.
public struct AssociateEventData: Sendable {
    let payload: Payload

    /// The source.
    public var ioSourceId: CoatyUUID { CoatyUUID(wire: payload.json["ioSourceId"]?.string ?? "") }

    /// The actor.
    public var ioActorId: CoatyUUID { CoatyUUID(wire: payload.json["ioActorId"]?.string ?? "") }

    /// The route of the values; nil if the association is dissolved.
    public var associatingRoute: String? { payload.json["associatingRoute"]?.string }

    /// The rate that is recommended to the source, in milliseconds, rounded up to a whole number.
    public var updateRate: Int? {
        payload.json["updateRate"]?.number.flatMap { Int(exactly: $0.rounded(.up)) }
    }
}
