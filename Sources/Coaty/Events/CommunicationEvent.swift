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
    init(payload: Payload, topic: CommunicationTopic) throws(PayloadError)
}

/// The payload of an event: JSON, syntactically checked.
public struct Payload: Sendable {
    let document: JSONDocument

    /// Checks a JSON text.
    ///
    /// - Throws: ``PayloadError/malformed(_:)``
    public init(_ bytes: [UInt8]) throws(PayloadError) {
        do throws(JSONSyntaxError) {
            document = try JSONDocument(bytes)
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
