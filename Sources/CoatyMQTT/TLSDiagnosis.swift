import CMosquitto
import Coaty
import Foundation

/// Determines why TLS has failed. libmosquitto returns one code for all errors, and logs the details.
struct TLSDiagnosis {
    private var lines: [String] = []
    private var verification: Int?

    /// Alerts of the broker that are about the client's certificate (RFC 8446, section 6.2).
    private static let certificateAlerts = [
        "alert certificate required", "alert bad certificate", "alert unknown ca", "alert certificate expired",
        "alert certificate revoked", "alert certificate unknown", "alert unsupported certificate",
        "alert access denied",
    ]

    static let closedDuringHandshake =
        "the connection was closed during the TLS handshake; does the broker offer TLS on this port?"

    static let refusedCertificate = "the broker refuses the client certificate, or asks for one"

    /// Maximum number of stored lines of one connection.
    private static let maximumLines = 20

    /// Handles an error from libmosquitto's log, with OpenSSL's current verification result of the broker's
    /// certificate.
    mutating func note(_ line: String, verification: Int?) {
        if lines.count < Self.maximumLines { lines.append(line) }
        if let verification, verification != Int(X509_V_OK) { self.verification = verification }
    }

    /// The cause; nil if no TLS error was reported.
    var error: ConnectionError? {
        guard !lines.isEmpty else { return nil }
        if let error = verificationError { return error }
        if reports("key values mismatch") || reports("inconsistent") {
            return ConnectionError(.tlsKeyMismatch, "the private key does not belong to the client certificate")
        }
        if reports("Unable to load") {
            let what = lines.first { $0.contains("Unable to load") } ?? ""
            return ConnectionError(.tlsFile, what.replacing("Error: ", with: ""))
        }
        if reports("wrong version number") || reports("packet length too long") {
            return ConnectionError(.tlsNotOffered, "the broker does not offer TLS on this port")
        }
        if reports("unexpected eof") {
            return ConnectionError(.tlsNotOffered, Self.closedDuringHandshake)
        }
        if Self.certificateAlerts.contains(where: reports) {
            return ConnectionError(
                .tlsClientCertificate,
                "\(Self.refusedCertificate): \(openSSLReason)"
            )
        }
        return ConnectionError(.tls, "TLS failed: \(openSSLReason)")
    }

    private func reports(_ text: String) -> Bool { lines.contains { $0.contains(text) } }

    /// The last part of a text such as `error:0A000086:SSL routines::certificate verify failed`.
    private var openSSLReason: String {
        let line = lines.last { $0.contains("OpenSSL") } ?? lines.last ?? ""
        return line.split(separator: ":").last.map(String.init) ?? line
    }

    private var verificationError: ConnectionError? {
        guard let verification else { return nil }
        let reason = String(cString: X509_verify_cert_error_string(verification))
        switch Int32(verification) {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return ConnectionError(
                .tlsWrongHost,
                "the broker's certificate is not for the host name that was configured"
            )
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return ConnectionError(.tlsExpired, "the broker's certificate, or that of its authority, has expired")
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return ConnectionError(
                .tlsNotYetValid,
                "the broker's certificate, or that of its authority, is not yet valid"
            )
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
            X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_SIGNATURE_FAILURE:
            return ConnectionError(
                .tlsUnknownAuthority,
                "the broker's certificate is not signed by a trusted authority: \(reason)"
            )
        default:
            return ConnectionError(.tls, "the broker's certificate is not accepted: \(reason)")
        }
    }
}

extension MQTTClientOptions.TLSOptions {
    /// Checks that the files can be read; otherwise libmosquitto would report an invalid argument.
    func checkFiles() throws(ConnectionError) {
        let files = [caFile, certificateFile, keyFile].compactMap(\.self)
        guard let file = files.first(where: { !FileManager.default.isReadableFile(atPath: $0) }) else { return }
        throw ConnectionError(.tlsFile, "the TLS file \(file) can't be read")
    }
}
