/// The protocol of a connection, detected from its first bytes without consuming them.
enum ProtocolPeek: Equatable {
    case http
    case webSocket
    /// Too few bytes to decide.
    case undecided

    /// Start of a WebSocket request; `/`, `?` or a space must follow.
    private static let prefix = Array("GET \(WebSocketEndpoint.path)".utf8)

    /// Number of bytes that always suffice to decide.
    static let length = prefix.count + 1

    init(_ bytes: some RandomAccessCollection<UInt8>) {
        guard bytes.prefix(Self.prefix.count).elementsEqual(Self.prefix.prefix(bytes.count)) else {
            self = .http
            return
        }
        switch bytes.dropFirst(Self.prefix.count).first {
        case nil: self = .undecided
        case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: " "): self = .webSocket
        default: self = .http
        }
    }
}
