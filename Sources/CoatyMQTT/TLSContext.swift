import CMosquitto
import Foundation

/// OpenSSL's context for the connections to a broker.
///
/// libmosquitto gets a numeric address, even if a name was configured, and would send it as the server's name and
/// compare it with the certificate. Therefore it gets this context, which it uses unchanged: OpenSSL itself verifies that
/// the certificate is for the broker, together with the chain of its authorities, and the server's name in the handshake
/// is corrected.
///
/// (libmosquitto 2.0 can also add its own options to a context, but then refuses every certificate, because it has not
/// initialized its check.)
enum TLSContext {
    /// Lets a new handle of libmosquitto use a context.
    ///
    /// - Parameters:
    ///   - handshake: where the handshake is noted; must outlive the handle.
    ///   - note: records a line in the form of libmosquitto's log, for ``TLSDiagnosis``.
    static func use(
        _ tls: MQTTClientOptions.TLSOptions,
        for address: BrokerAddress,
        on handle: OpaquePointer,
        noting handshake: UnsafeMutablePointer<cmosq_handshake>,
        note: (String) -> Void
    ) throws(MosquittoError) {
        let failure = MosquittoError(code: Int32(MOSQ_ERR_TLS.rawValue), errno: 0)
        guard let context = cmosq_make_context(handshake) else { throw failure }
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
        let isRequired =
            if address.numeric == nil {
                // The configured text can be one that OpenSSL reads in another way, or not at all, such as 127.1.
                cmosq_require_address(
                    context,
                    withoutScope(BrokerAddress.numeric(address.host) ?? address.host),
                    withoutScope(address.host)
                )
            } else {
                cmosq_require_name(context, address.host)
            }
        try check(isRequired, "Unable to use the name of the broker.")
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

    /// Returns a numeric address without its scope, such as that of `fe80::1%eth0`, which certificates do not have.
    private static func withoutScope(_ address: String) -> String { String(address.prefix { $0 != "%" }) }
}
