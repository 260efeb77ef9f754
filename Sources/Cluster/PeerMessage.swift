import Coaty
import Foundation

/// A message of one gateway of a cluster to all others: a Channel event with an object that contains the sealed text.
///
/// Other agents can see only that there is one. The text has two lines, each JSON: the head and the body.
package struct PeerMessage: Sendable {
    static let channelId = "io.coaty-gateway.peers"
    static let objectType = "io.coaty-gateway.PeerMessage"

    /// A start of a gateway, in 32 hexadecimal digits. Unlike the id of its identity, nobody can choose it.
    package typealias Session = String

    /// Returns a part of a session that distinguishes it from others. With the whole sessions, the bytes that a broker
    /// sends would grow much faster with the number of gateways.
    static func shortForm(of session: Session) -> String { String(session.prefix(8)) }

    /// The sender and the time of a message.
    struct Head: Codable, Sendable {
        /// The id of the sender's identity.
        let from: CoatyUUID
        let session: Session
        /// Increases with each message of the session.
        let sequence: UInt64
        /// Milliseconds since the start of the sender's session.
        let time: Int64
        /// The short forms of the sessions whose messages the sender has received: proves that the message was written after
        /// they began.
        let sees: [String]
        /// The URL at which the sender may be reached. Only signs of life have it; nil if it is not known.
        var url: String?
        /// Whether the sender is about to leave.
        var isStopping = false
        /// The revision of each replicated part; see ``PeerPart``.
        var revisions: [String: UInt64] = [:]
        var content = Content.state
        /// The part that the body belongs to; nil without a body.
        var part: String?
        /// The session that the message is for; nil for all.
        var to: Session?
        /// Identifies a question of the sender, or the question that is answered.
        var question: UInt64?
    }

    enum Content: String, Codable, Sendable {
        /// Only the head.
        case state
        /// The first piece of the whole state of a part, which replaces all earlier ones.
        case whole
        /// A change of a part, or a further piece of its whole state.
        case change
        /// Asks a session to send a part as a whole.
        case wanted
        /// A question to one session, and the answer to it.
        case question, answer
    }

    let head: Head
    let body: [UInt8]

    init(_ head: Head, body: [UInt8] = []) {
        self.head = head
        self.body = body
    }

    /// Returns the event that contains the message.
    func event(_ seal: Seal, namespace: String) throws -> ChannelEvent {
        let text = try PayloadCoder.encodeBytes(head) + [UInt8(ascii: "\n")] + body
        let sealed = Data(seal.seal(text, for: Self.context(head.from, namespace))).base64EncodedString()
        let payload = try Payload(
            Array(
                """
                {"object":{"coreType":"CoatyObject","name":"peer message","objectId":"\(CoatyUUID())",\
                "objectType":"\(Self.objectType)","sealed":"\(sealed)"}}
                """.utf8
            )
        )
        return try ChannelEvent(channelId: Self.channelId, payload: payload)
    }

    /// Reads an event; nil if it is not a message of a gateway with the same key in the same namespace.
    init?(_ event: ChannelEvent, _ seal: Seal, namespace: String) {
        guard let source = event.sourceId, let sealed = event.payload.json["object"]?["sealed"]?.string,
            let bytes = Data(base64Encoded: sealed), let text = seal.open(bytes, for: Self.context(source, namespace)),
            let end = text.firstIndex(of: UInt8(ascii: "\n")),
            let document = try? JSONDocument(Array(text[..<end])),
            let head = try? PayloadCoder.decode(Head.self, from: document.root), head.from == source
        else { return nil }
        self.init(head, body: Array(text[(end + 1)...]))
    }

    private static func context(_ source: CoatyUUID, _ namespace: String) -> [UInt8] {
        Array("\(namespace)\n\(source)".utf8)
    }
}
