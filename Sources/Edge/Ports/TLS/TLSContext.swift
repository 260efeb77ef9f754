import Base
import COpenSSL
import Glibc

/// The TLS files of the port.
package struct TLSFiles: Sendable, Equatable {
    /// PEM file with the certificate of the gateway and those of the intermediate authorities.
    var certificate: String
    /// PEM file with the private key.
    var key: String
    /// PEM file of the authorities that sign client certificates; nil requests no client certificates.
    var clientAuthorities: String?
    var requiresClientCertificate = false

    package init(
        certificate: String,
        key: String,
        clientAuthorities: String? = nil,
        requiresClientCertificate: Bool = false
    ) {
        self.certificate = certificate
        self.key = key
        self.clientAuthorities = clientAuthorities
        self.requiresClientCertificate = requiresClientCertificate
    }

    var all: [String] { [certificate, key] + [clientAuthorities].compactMap(\.self) }
}

/// The reason why files can't be used for TLS.
package struct CertificateError: Error, CustomStringConvertible {
    let file: String
    let reason: String
    /// Whether the unchanged file can be used later.
    package var isEarly = false

    package var description: String { "\(file): \(reason)" }
}

/// A configured context of OpenSSL for creating connections. A connection keeps its context after a reload.
///
/// @unchecked: OpenSSL does its own reference counting and locking; nothing is configured after `init`.
package final class TLSContext: @unchecked Sendable {
    private let context: OpaquePointer
    /// The start and the end of the certificate's validity, in seconds since 1970.
    let beginning: Int64
    package let expiry: Int64

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

    /// Whether the certificate is currently valid.
    var isValid: Bool {
        let now = Int64(time(nil))
        return beginning <= now && now < expiry
    }

    /// Returns a context that differs only in its keys for session tickets: tickets of this context are not valid
    /// there.
    ///
    /// - Returns: nil if memory runs out.
    func renewed() -> TLSContext? { cssl_renewed_context(context).map(TLSContext.init(owning:)) }

    deinit { SSL_CTX_free(context) }

    /// Creates the server side of a connection on a connected socket, which the caller still owns.
    ///
    /// - Returns: nil if memory runs out.
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
            throw CertificateError(file: file, reason: "cannot be read: \(errorText(errno))")
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
