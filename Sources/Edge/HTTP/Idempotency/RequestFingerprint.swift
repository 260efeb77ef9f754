import Access
import COpenSSL
import HTTPServer

/// The SHA-256 digest of a request's method, path, query and body.
struct RequestFingerprint: Sendable, Equatable {
    private let digest: [UInt8]

    init(_ request: borrowing HTTPRequest) {
        var parts = [Array(request.method.rawValue.utf8), Array(request.path.utf8)]
        // A cache or proxy may add another ignored parameter to each request.
        for item in request.queryItems where !QueryNames.isIgnored(item.name) {
            parts += [Array(item.name.utf8), Array(item.value.utf8)]
        }
        self.init(parts + [request.body])
    }

    /// Computes the digest of some parts. Each part is hashed with its length, so that different parts never give the
    /// same input.
    init(_ parts: [[UInt8]]) {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var isComputed = EVP_DigestInit_ex(context, TokenDigest.sha256, nil) == 1
        for part in parts {
            withUnsafeBytes(of: part.count) { length in
                isComputed = isComputed && EVP_DigestUpdate(context, length.baseAddress, length.count) == 1
            }
            part.withUnsafeBytes { bytes in
                isComputed = isComputed && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
            }
        }
        digest = Array(unsafeUninitializedCapacity: TokenDigest.length) { buffer, count in
            isComputed = isComputed && EVP_DigestFinal_ex(context, buffer.baseAddress, nil) == 1
            precondition(isComputed, "OpenSSL does not provide SHA-256")
            count = TokenDigest.length
        }
    }
}
