/// An event: the checked bytes of its payload, and who sent it.
///
/// Nothing is decoded before somebody asks for it, so forwarding an event costs neither decoding nor encoding.
public protocol CommunicationEvent: Sendable {
    /// Which event.
    static var eventType: CommunicationEventType { get }

    /// The checked payload.
    var payload: Payload { get }
    /// Who sent the event; nil for an event that was made here and not yet published.
    var sourceId: CoatyUUID? { get }

    /// Reads an event that came in.
    ///
    /// - Throws: ``PayloadError`` where the payload is not that of the event.
    init(payload: Payload, address: EventAddress) throws(PayloadError)
}

/// An event that asks for answers.
///
/// An answer that does not fit its request is refused at both ends.
public protocol RequestEvent: CommunicationEvent {
    /// The event that answers this one.
    associatedtype Response: CommunicationEvent

    /// Which request it is; nil for an event that was made here and not yet published.
    var correlationId: CoatyUUID? { get }
    /// Carries answers back; nil for an event that was made here.
    var responder: Responder? { get set }
    /// The names that the request is published under, in this order; one nil if its pattern has none.
    var names: [EventName?] { get }

    /// Checks that a response answers this request.
    ///
    /// - Throws: ``PayloadError`` with the place in the response that does not fit.
    func checkFits(_ response: Response) throws(PayloadError)
}

extension RequestEvent {
    /// The request, to be answered by another agent than the one that observed it.
    package func answered(by manager: CommunicationManager) -> Self {
        var request = self
        request.responder = Responder(manager: manager)
        return request
    }

    /// Publishes an answer.
    ///
    /// - Parameter holding: released when the answer is written or given up.
    /// - Throws: ``PayloadError`` if the answer does not match the request; ``CommunicationError`` if it can't be published.
    package func answer(_ response: Response, holding: (any AnyObject & Sendable)? = nil) throws -> Delivery {
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

    /// Checks a JSON text of at most some number of values, names of members included.
    ///
    /// - Throws: ``PayloadError/malformed(_:)``
    package init(_ bytes: [UInt8], maximumValues: Int) throws(PayloadError) {
        do throws(JSONSyntaxError) {
            document = try JSONDocument(bytes, maximumValues: maximumValues)
        } catch {
            throw .malformed(error)
        }
    }

    /// Encodes a payload that is made here.
    init<Body: Encodable>(encoding body: Body) throws {
        try self.init(PayloadCoder.encodeBytes(body))
    }

    /// The text, as it came in or goes out.
    public var bytes: [UInt8] { document.bytes }

    /// About how many bytes the payload holds in memory: the text, and an index of its values.
    package var footprint: Int { document.footprint }

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
