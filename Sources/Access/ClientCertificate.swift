import COpenSSL

/// The names in a client certificate whose chain has been verified.
package struct ClientCertificate: Sendable, Equatable {
    private(set) var commonNames: [String] = []
    private(set) var dnsNames: [String] = []
    private(set) var uris: [String] = []
    private(set) var emails: [String] = []
    /// The end of its validity, in seconds since 1970.
    package let expiry: Int64

    /// Maximum number of stored names.
    private static let maximumNames = 64

    /// Reads the certificate of a connection's peer.
    ///
    /// - Returns: nil if the peer has sent none, or it was not verified.
    package init?(ofPeer ssl: OpaquePointer) {
        guard let certificate = SSL_get0_peer_certificate(ssl), SSL_get_verify_result(ssl) == Int(X509_V_OK) else {
            return nil
        }
        expiry = cssl_expiry(certificate)
        withUnsafeMutablePointer(to: &self) { names in
            cssl_each_name(certificate, names) { context, kind, bytes, count in
                let text = UnsafeBufferPointer(start: bytes, count: count)
                // A NUL byte could hide the rest of a name from C code.
                guard let context, !text.contains(0), let name = String(validating: text, as: UTF8.self), !name.isEmpty
                else { return }
                context.assumingMemoryBound(to: ClientCertificate.self).pointee.add(name, kind: Int(kind))
            }
        }
    }

    /// The name of the principal: the first URI, DNS name or email address, or else the common name of the subject,
    /// which is used only if there is no alternative name (RFC 6125, section 6.4.4). Nil if there is none, or it is not
    /// a valid name.
    var principalName: String? {
        let name = uris.first ?? dnsNames.first ?? emails.first ?? commonNames.first
        return name.flatMap { AccessConfiguration.isName($0) ? $0 : nil }
    }

    private mutating func add(_ name: String, kind: Int) {
        guard commonNames.count + dnsNames.count + uris.count + emails.count < Self.maximumNames else { return }
        switch kind {
        case CSSL_COMMON_NAME: commonNames.append(name)
        case CSSL_DNS: dnsNames.append(name)
        case CSSL_URI: uris.append(name)
        default: emails.append(name)
        }
    }
}
