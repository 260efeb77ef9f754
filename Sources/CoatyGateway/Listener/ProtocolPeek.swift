/// Tells from the first bytes of a connection, before anybody has read them, which library serves it.
enum ProtocolPeek: Equatable {
    case http
    case webSocket
    /// Too few bytes to tell.
    case undecided

    /// What a request for a stream begins with; `/`, `?` or a space must follow.
    private static let prefix = Array("GET \(StreamEndpoint.path)".utf8)

    /// How many bytes tell in any case.
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
