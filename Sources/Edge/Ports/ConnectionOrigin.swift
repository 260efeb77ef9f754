import Access
import Glibc
import HTTPServer
import Synchronization

/// The origin of a connection. The listener creates it, both servers keep it with the descriptor, and the admission
/// reads it.
package final class ConnectionOrigin: ReceptionClock {
    /// The numeric IP address of the socket's peer, or of the client in the header of a trusted proxy; empty if there
    /// is none.
    package let peer: String
    /// Whether the gateway has terminated TLS.
    let isEncrypted: Bool
    /// The verified certificate of the client; nil if it has sent none.
    let certificate: ClientCertificate?

    init(peer: String, isEncrypted: Bool = false, certificate: ClientCertificate? = nil) {
        self.peer = peer
        self.isEncrypted = isEncrypted
        self.certificate = certificate
        noteReception()
    }

    private let reception = Atomic(0)

    var lastReception: Int { reception.load(ordering: .relaxed) }

    /// Records that bytes of the client have arrived. Only the relay calls it: the servers ask the kernel about other
    /// connections.
    func noteReception() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        reception.store(time.tv_sec * 1000 + time.tv_nsec / 1_000_000, ordering: .relaxed)
    }

    /// Returns the origin that a server keeps as the context of a connection.
    static func of(_ context: (any Sendable & AnyObject)?) -> ConnectionOrigin? { context as? ConnectionOrigin }

    /// Returns the certificate of the client; nil behind a proxy that forwards requests, because it would be the
    /// proxy's certificate.
    func certificate(_ addressing: ClientAddressing) -> ClientCertificate? {
        addressing.fieldName(forPeer: peer) == nil ? certificate : nil
    }

    /// The memory for encryption, in bytes: OpenSSL's memory for an idle connection, and the bytes that are being
    /// relayed.
    var encryptionCost: Int { isEncrypted ? TLSRelay.connectionCost : 0 }
}
