import Synchronization

/// The reason why a TLS connection ended before it was passed to a server. The raw value is the name in metrics.
package enum HandshakeFailure: String, CaseIterable {
    /// The client does not use TLS.
    case plainText = "plain_text"
    /// OpenSSL has ended the handshake: versions, ciphers or protocols do not match, a client certificate is refused,
    /// or records are malformed. Or the client has ended it with an alert, for example because it does not trust the
    /// certificate.
    case tls = "tls_error"
    /// The client has closed the connection.
    case closed = "client_closed"
    case timeout
    /// The connection was closed in favour of a newer one.
    case evicted
    /// The process has no descriptors or memory left.
    case noResources = "no_resources"
}

/// Counts connections that ended before they were passed to a server.
final class HandshakeFailures: Sendable {
    private let counts = Mutex<[HandshakeFailure: Int]>([:])

    /// The number of failures since the start, by reason.
    var all: [HandshakeFailure: Int] { counts.withLock(\.self) }

    func count(_ failure: HandshakeFailure) { counts.withLock { $0[failure, default: 0] += 1 } }
}
