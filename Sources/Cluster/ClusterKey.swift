import Access
import COpenSSL
import Foundation

/// The secret that all gateways of a cluster share.
///
/// It protects what the gateways send each other through the broker, and makes cursors and resume tokens of one gateway
/// valid at the others. Each purpose has its own key.
package struct ClusterKey: Sendable {
    package enum Purpose: String {
        case messages, cursors, events, identities
    }

    /// The reason why a file can't be used.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Minimum length of the secret in the file, in bytes.
    package static let minimumLength = 32
    /// Length of a derived key, in bytes.
    package static let length = 32
    private static let maximumFileSize = 4096

    private let secret: [UInt8]

    /// Reads the secret: the first line of the file, without white space around it.
    package init(file path: String) throws(Failure) {
        guard let file = FileHandle(forReadingAtPath: path), let data = try? file.read(upToCount: Self.maximumFileSize)
        else { throw Failure(description: "cluster-key-file \(path) can't be read, or is empty") }
        let line = String(decoding: data, as: UTF8.self).split(separator: "\n", maxSplits: 1).first ?? ""
        try self.init(secret: line.trimmingCharacters(in: .whitespaces), path)
    }

    /// - Parameter source: the place of the secret, for the error.
    init(secret: String, _ source: String) throws(Failure) {
        guard secret.utf8.count >= Self.minimumLength else {
            throw Failure(
                description: "cluster-key-file \(source): its first line must have at least \(Self.minimumLength) bytes"
            )
        }
        self.secret = Array(secret.utf8)
    }

    /// Returns the key for a purpose: HMAC-SHA256 of its name.
    package func derived(_ purpose: Purpose) -> [UInt8] {
        let label = Array("coaty-gateway \(purpose.rawValue)".utf8)
        return Array(unsafeUninitializedCapacity: Self.length) { bytes, count in
            let result = HMAC(
                TokenDigest.sha256,
                secret,
                Int32(secret.count),
                label,
                label.count,
                bytes.baseAddress,
                nil
            )
            precondition(result != nil, "OpenSSL does not provide HMAC")
            count = Self.length
        }
    }
}
