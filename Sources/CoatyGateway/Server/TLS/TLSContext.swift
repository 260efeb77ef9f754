import COpenSSL
import Glibc

/// The files that TLS on the port needs.
struct TLSFiles: Sendable, Equatable {
    /// PEM file with the certificate of the gateway, and those of the authorities between it and a root.
    var certificate: String
    /// PEM file with the private key.
    var key: String
    /// PEM file of the authorities that sign client certificates; nil asks clients for none.
    var clientAuthorities: String?
    var requiresClientCertificate = false

    var all: [String] { [certificate, key] + [clientAuthorities].compactMap(\.self) }
}

/// Why files can't be used for TLS.
struct CertificateError: Error, CustomStringConvertible {
    let file: String
    let reason: String
    /// Whether the file can be used later, as it is.
    var isEarly = false

    var description: String { "\(file): \(reason)" }
}

/// A configured context of OpenSSL, from which connections are made. A connection keeps its context after a reload.
///
/// @unchecked: OpenSSL counts references and locks by itself; nothing is configured after `init`.
final class TLSContext: @unchecked Sendable {
    private let context: OpaquePointer
    /// The times between which the certificate is valid, in seconds since 1970.
    let beginning: Int64
    let expiry: Int64

    convenience init(_ files: TLSFiles) throws(CertificateError) {
        ERR_clear_error()
        guard let context = cssl_server_context() else {
            throw CertificateError(file: files.certificate, reason: "OpenSSL can't set itself up: \(Self.reason())")
        }
        do throws(CertificateError) {
            try Self.load(files, into: context)
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        self.init(owning: context)
    }

    private init(owning context: OpaquePointer) {
        self.context = context
        let certificate = SSL_CTX_get0_certificate(context)
        beginning = certificate.map { cssl_beginning($0) } ?? 0
        expiry = certificate.map { cssl_expiry($0) } ?? 0
    }

    /// Whether the certificate is valid at this time.
    var isValid: Bool {
        let now = Int64(time(nil))
        return beginning <= now && now < expiry
    }

    /// Makes a context that differs in the keys for session tickets only: a ticket of this one begins no session there.
    ///
    /// - Returns: nil without memory.
    func renewed() -> TLSContext? { cssl_renewed_context(context).map(TLSContext.init(owning:)) }

    deinit { SSL_CTX_free(context) }

    /// Makes the server's side of a connection on a connected socket, which stays the caller's.
    ///
    /// - Returns: nil without memory.
    func makeConnection(_ descriptor: Int32) -> OpaquePointer? {
        guard let ssl = SSL_new(context) else { return nil }
        guard SSL_set_fd(ssl, descriptor) == 1 else {
            SSL_free(ssl)
            return nil
        }
        SSL_set_accept_state(ssl)
        return ssl
    }

    private static func load(_ files: TLSFiles, into context: OpaquePointer) throws(CertificateError) {
        for file in files.all where access(file, R_OK) != 0 {
            throw CertificateError(file: file, reason: "cannot be read")
        }
        guard SSL_CTX_use_certificate_chain_file(context, files.certificate) == 1 else {
            throw CertificateError(file: files.certificate, reason: "is no PEM certificate: \(reason())")
        }
        guard SSL_CTX_use_PrivateKey_file(context, files.key, SSL_FILETYPE_PEM) == 1,
            SSL_CTX_check_private_key(context) == 1
        else {
            throw CertificateError(
                file: files.key,
                reason: "is no PEM private key of the certificate in \(files.certificate): \(reason())"
            )
        }
        guard let authorities = files.clientAuthorities else { return }
        guard cssl_verify_clients(context, authorities, files.requiresClientCertificate ? 1 : 0) == 1 else {
            throw CertificateError(file: authorities, reason: "has no PEM certificate of an authority: \(reason())")
        }
    }

    private static func reason() -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            cssl_take_error(start, buffer.count)
            return String(cString: start)
        }
    }
}
