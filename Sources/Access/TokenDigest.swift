import Base
import COpenSSL

/// The SHA-256 digest of a token or ticket. The gateway stores only digests, so a copy of its configuration grants no
/// access.
///
/// Digests are compared in constant time.
package struct TokenDigest: Hashable, Sendable {
    /// Length in bytes.
    package static let length = 32

    /// The algorithm. `EVP_sha256()` would look it up for each digest. Invariant: OpenSSL does not change a fetched
    /// algorithm.
    package nonisolated(unsafe) static let sha256 = EVP_MD_fetch(nil, "SHA256", nil)

    /// ``length`` bytes.
    package let bytes: [UInt8]

    /// Computes the digest of the token's UTF-8 text.
    package init(of token: String) {
        bytes = Array(unsafeUninitializedCapacity: Self.length) { digest, count in
            var token = token
            let result = token.withUTF8 {
                EVP_Digest($0.baseAddress, $0.count, digest.baseAddress, nil, Self.sha256, nil)
            }
            precondition(result == 1, "OpenSSL does not provide SHA-256")
            count = Self.length
        }
    }

    /// Returns nil if `bytes` are not ``length`` bytes.
    init?(bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        self.bytes = bytes
    }

    /// Returns nil if the text is not 64 hexadecimal digits, in either case.
    init?(hex: String) {
        let digits = hex.unicodeScalars.map { $0.properties.isASCIIHexDigit ? Character($0).hexDigitValue : nil }
        guard digits.count == 2 * Self.length else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        self.bytes = bytes
    }

    /// The digest in 64 lower-case hexadecimal digits.
    package var hex: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    package static func == (left: TokenDigest, right: TokenDigest) -> Bool {
        CRYPTO_memcmp(left.bytes, right.bytes, length) == 0
    }
}

/// Secrets that can't be guessed.
package enum RandomSecret {
    /// Prefix of every token. Secret scanners use it to find tokens that were published by mistake.
    static let tokenPrefix = "coaty_"

    private static let length = 32

    /// Creates a token: ``tokenPrefix`` and a secret.
    package static func token() -> String { tokenPrefix + text() }

    /// Creates a secret: 32 random bytes in base64url without padding (RFC 4648, section 5).
    package static func text() -> String {
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            precondition(RAND_bytes(buffer.baseAddress, Int32(length)) == 1, "OpenSSL has no random numbers")
            count = length
        }
        return Base64URL.encode(bytes)
    }
}
