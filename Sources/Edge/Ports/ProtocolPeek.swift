/// The protocol of a connection, detected from its first bytes without consuming them.
package enum ProtocolPeek: Equatable {
    case http
    /// An HTTP connection whose first request is a health probe and has arrived completely: clients that send half a
    /// request must not occupy the few connections for probes.
    case health
    case webSocket
    /// Too few bytes to decide.
    case undecided

    /// The start of a request, and the allowed bytes after it.
    private static let starts: [(prefix: [UInt8], next: [UInt8], kind: ProtocolPeek)] = [
        (Array("GET \(WebSocketEndpoint.path)".utf8), Array("/? ".utf8), .webSocket),
        (Array("GET \(HealthResource.healthPath)".utf8), Array("? ".utf8), .health),
        (Array("GET \(HealthResource.readinessPath)".utf8), Array("? ".utf8), .health),
    ]

    private static let headEnd = Array("\r\n\r\n".utf8)
    private static let bodyFields = [Array("content-length".utf8), Array("transfer-encoding".utf8)]

    /// Number of bytes that always suffices to decide. The heads of probes are shorter.
    static let length = 2048

    /// Returns whether a head is complete and announces no body.
    private static func isWhole(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
        guard let end = bytes.firstRange(of: headEnd)?.lowerBound else { return false }
        // Letters become lower case; the results for other characters do not matter.
        let head = bytes[..<end].map { $0 | 0x20 }
        return !bodyFields.contains { head.contains($0) }
    }

    init(_ bytes: some RandomAccessCollection<UInt8>) {
        self = .http
        for (prefix, next, kind) in Self.starts {
            guard bytes.prefix(prefix.count).elementsEqual(prefix.prefix(bytes.count)) else { continue }
            guard let byte = bytes.dropFirst(prefix.count).first else {
                self = .undecided
                return
            }
            guard next.contains(byte) else { return }
            self = kind == .health && !Self.isWhole(bytes) ? .http : kind
            return
        }
    }
}
