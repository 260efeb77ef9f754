/// Where a connection comes from. The listener makes it, both servers carry it beside the descriptor, admission reads it.
final class ConnectionOrigin: Sendable {
    /// The numeric IP address of the socket's peer, or of the client that a trusted proxy has named for the connection; empty if it
    /// has none.
    let peer: String
    /// Whether the gateway has terminated TLS.
    let isEncrypted: Bool
    /// The verified certificate of the client; nil if it has sent none.
    let certificate: ClientCertificate?

    init(peer: String, isEncrypted: Bool = false, certificate: ClientCertificate? = nil) {
        self.peer = peer
        self.isEncrypted = isEncrypted
        self.certificate = certificate
    }

    /// The origin that a server carries as the context of a connection.
    static func of(_ context: (any Sendable & AnyObject)?) -> ConnectionOrigin? { context as? ConnectionOrigin }

    /// The certificate of the client; nil behind a proxy that forwards requests, because it would be the proxy's.
    func certificate(_ addressing: ClientAddressing) -> ClientCertificate? {
        addressing.fieldName(forPeer: peer) == nil ? certificate : nil
    }

    /// The bytes that the gateway holds for encryption: of OpenSSL for an idle connection, and of what is being relayed.
    var encryptionCost: Int { isEncrypted ? TLSRelay.connectionCost : 0 }
}
