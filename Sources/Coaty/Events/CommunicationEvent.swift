/// An event: its sender and the checked bytes of its payload.
///
/// The payload is decoded only on access, so forwarding an event costs neither decoding nor encoding.
public protocol CommunicationEvent: Sendable {
    /// The type of the event.
    static var eventType: CommunicationEventType { get }

    /// The checked payload.
    var payload: Payload { get }
    /// The sender of the event; nil for a local event that is not yet published.
    var sourceId: CoatyUUID? { get }

    /// Decodes a received event.
    ///
    /// - Throws: ``PayloadError`` if the payload does not match the event type.
    init(payload: Payload, address: EventAddress) throws(PayloadError)
}

/// An event that requests answers.
///
/// An answer that does not match its request is refused by the sender and by the receiver.
public protocol RequestEvent: CommunicationEvent {
    /// The event that answers this one.
    associatedtype Response: CommunicationEvent

    /// The id of the request; nil for a local event that is not yet published.
    var correlationId: CoatyUUID? { get }
    /// Sends answers to the requester; nil for a local event.
    var responder: Responder? { get set }
    /// The names that the request is published under, in this order; a single nil if its pattern has none.
    var names: [EventName?] { get }

    /// Checks that a response answers this request.
    ///
    /// - Throws: ``PayloadError`` with the place in the response that does not match.
    func checkFits(_ response: Response) throws(PayloadError)
}

extension RequestEvent {
    /// Returns the request with a responder of another agent than the one that observed it.
    package func answered(by manager: CommunicationManager) -> Self {
        var request = self
        request.responder = Responder(manager: manager)
        return request
    }

    /// Publishes an answer.
    ///
    /// - Parameter holding: released when the answer is written or given up.
    /// - Throws: ``PayloadError`` if the answer does not match the request; ``CommunicationError`` if it can't be
    ///   published.
    package func answer(_ response: Response, holding: (any PublicationHolder)? = nil) throws -> Delivery {
        try checkFits(response)
        guard let responder, let correlationId else { throw CommunicationError.notARequest }
        return try responder.respond(Response.eventType, correlationId, response.payload, holding: holding)
    }
}

/// The payload of an event: JSON, syntactically checked.
public struct Payload: Sendable {
    let document: JSONDocument

    /// Checks a JSON text.
    ///
    /// - Throws: ``PayloadError/malformed(_:)``
    public init(_ bytes: [UInt8]) throws(PayloadError) {
        try self.init(bytes, maximumValues: .max)
    }

    /// Checks a JSON text with a maximum number of values, including member names.
    ///
    /// - Throws: ``PayloadError/malformed(_:)``
    public init(_ bytes: [UInt8], maximumValues: Int) throws(PayloadError) {
        do throws(JSONSyntaxError) {
            document = try JSONDocument(bytes, maximumValues: maximumValues)
        } catch {
            throw .malformed(error)
        }
    }

    /// Encodes a local payload.
    init<Body: Encodable>(encoding body: Body) throws {
        document = try JSONDocument(encoding: body)
    }

    /// The text as it is received or sent.
    public var bytes: [UInt8] { document.bytes }

    /// The approximate number of bytes that the payload uses in memory: the text and an index of its values.
    public var footprint: Int { document.footprint }

    /// The payload's JSON value.
    public var json: JSONView { document.root }
}

extension Payload {
    func check(_ properties: [PropertyRule]) throws(PayloadError) {
        try ValueRule.object(properties).check(json)
    }

    /// The private data of an event.
    var privateData: [String: AnyCodable]? {
        guard let view = json["privateData"], case .object(let members) = AnyCodable(view) else { return nil }
        return members
    }
}
