import CMosquitto
import Foundation

/// OpenSSL's context for the connection to one numeric address of a name.
///
/// libmosquitto gets the numeric address, which it would send as the server's name and compare with the certificate.
/// Therefore it gets this context, which it uses unchanged: OpenSSL itself verifies that the certificate is for the
/// name, together with the chain of its authorities, and the server's name in the handshake is corrected.
///
/// (libmosquitto 2.0 can also add its own options to a context, but then refuses every certificate, because it has not
/// initialized its check.)
enum NamedContext {
    /// Lets a new handle of libmosquitto use a context.
    ///
    /// - Parameter note: records a line in the form of libmosquitto's log, for ``TLSDiagnosis``.
    static func use(
        _ tls: MQTTClientOptions.TLSOptions,
        for name: String,
        on handle: OpaquePointer,
        note: (String) -> Void
    ) throws(MosquittoError) {
        let failure = MosquittoError(code: Int32(MOSQ_ERR_TLS.rawValue), errno: 0)
        guard let context = cmosq_make_context() else { throw failure }
        // The handle has its own reference.
        defer { SSL_CTX_free(context) }
        func check(_ isDone: Int32, _ line: String) throws(MosquittoError) {
            guard isDone != 1 else { return }
            note("Error: \(line)")
            while case let code = ERR_get_error(), code != 0 {
                var text = [CChar](repeating: 0, count: 256)
                ERR_error_string_n(code, &text, text.count)
                note("OpenSSL Error: " + String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self))
            }
            throw failure
        }
        ERR_clear_error()
        try check(cmosq_require_name(context, name), "Unable to use the name of the broker.")
        if let file = tls.caFile {
            try check(
                SSL_CTX_load_verify_locations(context, file, nil),
                "Unable to load CA certificates, check cafile \"\(file)\"."
            )
        } else {
            try check(SSL_CTX_set_default_verify_paths(context), "Unable to load CA certificates.")
            try check(SSL_CTX_load_verify_locations(context, nil, "/etc/ssl/certs"), "Unable to load CA certificates.")
        }
        if let file = tls.certificateFile {
            try check(
                SSL_CTX_use_certificate_chain_file(context, file),
                "Unable to load client certificate \"\(file)\"."
            )
        }
        if let file = tls.keyFile {
            try check(
                SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM),
                "Unable to load client key file \"\(file)\"."
            )
            try check(SSL_CTX_check_private_key(context), "Client certificate/key are inconsistent.")
        }
        ERR_clear_error()
        for code in [
            mosquitto_void_option(handle, MOSQ_OPT_SSL_CTX, UnsafeMutableRawPointer(context)),
            mosquitto_int_option(handle, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0),
        ] where code != Int32(MOSQ_ERR_SUCCESS.rawValue) {
            throw MosquittoError(code: code, errno: 0)
        }
    }
}
