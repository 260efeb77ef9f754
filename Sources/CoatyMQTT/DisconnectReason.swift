/// The code with which a broker ends a connection or refuses one (MQTT 5, section 2.4).
enum DisconnectReason {
    /// The lowest code of an error.
    static let firstError: Int32 = 0x80

    /// Returns whether a broker may end a connection with this code because of a publication, rather than because of itself
    /// or of another client.
    static func mayBeAboutPublication(_ code: Int32) -> Bool {
        ![0x88, 0x89, 0x8B, 0x8D, 0x8E, 0x96, 0x97, 0x98, 0x9C, 0x9D, 0x9F, 0xA0].contains(code)
    }

    /// Returns what a code means, for people.
    static func text(_ code: Int32) -> String {
        let meaning: String? =
            switch code {
            case 0x81: "malformed packet"
            case 0x82: "protocol error"
            case 0x83: "implementation specific error"
            case 0x87: "not authorized"
            case 0x88: "server unavailable"
            case 0x89: "server busy"
            case 0x8A: "banned"
            case 0x8B: "server shutting down"
            case 0x8D: "keep alive timeout"
            case 0x8E: "session taken over by another connection with the same client identifier"
            case 0x8F: "topic filter invalid"
            case 0x90: "topic name invalid"
            case 0x93: "receive maximum exceeded"
            case 0x95: "packet too large"
            case 0x96: "message rate too high"
            case 0x97: "quota exceeded"
            case 0x98: "administrative action"
            case 0x99: "payload format invalid"
            case 0x9A: "retain not supported"
            case 0x9C: "use another server"
            case 0x9D: "server moved"
            case 0x9F: "connection rate exceeded"
            case 0xA0: "maximum connect time"
            case 0xA2: "wildcard subscriptions not supported"
            default: nil
            }
        let number = "0x" + String(code, radix: 16, uppercase: true)
        return meaning.map { "\($0) (\(number))" } ?? number
    }
}
