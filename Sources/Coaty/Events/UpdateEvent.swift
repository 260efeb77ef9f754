/// Asks for, or suggests, an update of an object.
public struct UpdateEvent: RequestEvent {
    /// `UPD`
    public static let eventType = CommunicationEventType.update

    /// `{object}`
    public let payload: Payload
    /// What identifies the object.
    package let object: ObjectHeader
    /// Who asks.
    public let sourceId: CoatyUUID?
    /// Which request it is; nil for an event that was made here and not yet published.
    public let correlationId: CoatyUUID?
    /// Carries answers back; nil for an event that was made here.
    public var responder: Responder?

    /// Creates an event with the object as it should be.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where the object is not valid.
    public static func with(object: CoatyObject) throws -> UpdateEvent {
        try UpdateEvent(payload: Payload(encoding: ObjectBody(object: object)))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload is not `{object}` with an object whose type is a valid name.
    public init(payload: Payload) throws(PayloadError) {
        try payload.check(Self.schema)
        object = try ObjectHeader(of: payload, isPublishedHere: true)
        self.payload = payload
        sourceId = nil
        correlationId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try payload.check(Self.schema)
        object = try ObjectHeader(of: payload, isPublishedHere: false)
        self.payload = payload
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    private static let schema: [PropertyRule] = [.required("object", .coatyObject(nil))]

    /// What the event asks for.
    public var data: UpdateEventData { UpdateEventData(payload: payload) }

    /// The object type, unless it is the core type's own, and then the core type: agents in the field expect them so.
    public var names: [EventName?] { object.names.reversed() }

    /// Checks that the object is the one that is to be updated.
    public func checkFits(_ response: CompleteEvent) throws(PayloadError) {
        try response.payload.json["object"]?.check("objectId", isIn: [object.objectId.string])
    }

    /// Answers the request with the object as it is now. Several answers are allowed.
    ///
    /// - Throws: ``PayloadError`` where the answer does not fit the request; ``CommunicationError`` where it can't be
    ///   published.
    @discardableResult
    public func complete(_ event: CompleteEvent) throws -> Delivery {
        try answer(event)
    }
}

/// What an Update event asks for.
public struct UpdateEventData: Sendable {
    let payload: Payload

    /// The object as it should be, decoded anew each time: keep it.
    ///
    /// - Throws: `DecodingError` where the object's class does not understand it.
    public var object: CoatyObject {
        get throws { try payload.requiredObject() }
    }
}
