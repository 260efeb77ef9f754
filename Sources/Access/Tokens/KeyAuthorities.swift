import Base
import COpenSSL
import Foundation

/// The authorities that sign the certificate of a key URL.
enum KeyAuthorities {
    /// Checks that a PEM file contains at least one certificate.
    ///
    /// Otherwise no key could be fetched, and only the log would show it.
    ///
    /// - Throws: ``InvalidConfiguration``
    static func check(_ path: String) throws(InvalidConfiguration) {
        guard FileManager.default.isReadableFile(atPath: path) else {
            throw InvalidConfiguration(description: "access.jwt.keys-ca-file: \(path): cannot be read")
        }
        let store = X509_STORE_new()
        defer {
            X509_STORE_free(store)
            // On a thread that also writes to a TLS connection, OpenSSL would report a remaining error as an error of
            // that connection.
            ERR_clear_error()
        }
        guard X509_STORE_load_file(store, path) == 1 else {
            throw InvalidConfiguration(description: "access.jwt.keys-ca-file: \(path): has no certificate in PEM")
        }
    }
}
