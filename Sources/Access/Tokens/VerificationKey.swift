import Base
import CJose
import COpenSSL

/// A public key, or a shared secret, that verifies the signatures of tokens.
///
/// Each key is for one algorithm, which the key's type determines: a token can't choose another one.
package final class VerificationKey: Sendable {
    /// The parts of a key, as in JWKs (RFC 7518, 8037).
    enum Parts: Sendable, Hashable {
        case rsa(modulus: [UInt8], exponent: [UInt8])
        /// On the curve P-256.
        case ec(x: [UInt8], y: [UInt8])
        case ed25519([UInt8])
        case secret([UInt8])
    }

    /// The reason why a key can't be used.
    struct Unusable: Error, Equatable {
        let reason: String
    }

    static let minimumModulus = 2048
    static let maximumModulus = 8192
    static let minimumSecret = 32

    /// The key id in tokens; nil for a key of a PEM file.
    let id: String?
    let parts: Parts
    let algorithm: SignatureAlgorithm
    /// Revoked when the key is no longer among the loaded ones.
    let revocation = Revocation()

    private enum Handle {
        case jose(OpaquePointer)
        case openSSL(OpaquePointer)
    }

    /// Invariant: only this object owns the handle, and it is only read after `init`. libcjose and OpenSSL verify with
    /// one key on several threads; libcjose counts references without atomics, so this reference is never shared.
    private nonisolated(unsafe) let handle: Handle

    /// - Throws: ``Unusable``
    init(id: String?, _ parts: Parts) throws(Unusable) {
        // On a thread that also writes to a TLS connection, OpenSSL would report a remaining error as an error of that
        // connection.
        defer { ERR_clear_error() }
        self.id = id
        self.parts = parts
        switch parts {
        case .rsa(let modulus, let exponent):
            algorithm = .rs256
            let bits = 8 * modulus.count - (modulus.first?.leadingZeroBitCount ?? 0)
            guard bits >= Self.minimumModulus else {
                throw Unusable(reason: "is an RSA key of less than \(Self.minimumModulus) bits")
            }
            guard bits <= Self.maximumModulus, exponent.count <= 8 else {
                throw Unusable(
                    reason: "is an RSA key of more than \(Self.maximumModulus) bits, or has a large exponent"
                )
            }
            var (modulus, exponent) = (modulus, exponent)
            let key = modulus.withUnsafeMutableBufferPointer { modulus in
                exponent.withUnsafeMutableBufferPointer { exponent in
                    var spec = cjose_jwk_rsa_keyspec()
                    (spec.n, spec.nlen) = (modulus.baseAddress, modulus.count)
                    (spec.e, spec.elen) = (exponent.baseAddress, exponent.count)
                    return cjose_jwk_create_RSA_spec(&spec, nil)
                }
            }
            guard let key else { throw Unusable(reason: "is no RSA key") }
            handle = .jose(key)
        case .ec(var x, var y):
            algorithm = .es256
            guard x.count == 32, y.count == 32 else { throw Unusable(reason: "is no point of P-256") }
            let key = x.withUnsafeMutableBufferPointer { x in
                y.withUnsafeMutableBufferPointer { y in
                    var spec = cjose_jwk_ec_keyspec()
                    spec.crv = CJOSE_JWK_EC_P_256
                    (spec.x, spec.xlen) = (x.baseAddress, x.count)
                    (spec.y, spec.ylen) = (y.baseAddress, y.count)
                    return cjose_jwk_create_EC_spec(&spec, nil)
                }
            }
            guard let key else { throw Unusable(reason: "is no point of P-256") }
            handle = .jose(key)
        case .ed25519(let bytes):
            algorithm = .edDSA
            guard bytes.count == 32, let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count)
            else { throw Unusable(reason: "is no Ed25519 key") }
            handle = .openSSL(key)
        case .secret(let bytes):
            algorithm = .hs256
            guard bytes.count >= Self.minimumSecret else {
                throw Unusable(reason: "is a secret of less than \(Self.minimumSecret) bytes")
            }
            guard let key = cjose_jwk_create_oct_spec(bytes, bytes.count, nil) else {
                throw Unusable(reason: "is no secret")
            }
            handle = .jose(key)
        }
    }

    deinit {
        switch handle {
        case .jose(let key): _ = cjose_jwk_release(key)
        case .openSSL(let key): EVP_PKEY_free(key)
        }
    }

    /// Returns whether both keys have the same parts and the same id.
    func isSame(as other: VerificationKey) -> Bool { id == other.id && parts == other.parts }

    /// Returns whether the signature of a token is valid.
    ///
    /// - Parameter token: a token in the compact serialization, whose header contains ``algorithm``.
    func verifies(_ token: CompactToken) -> Bool {
        defer { ERR_clear_error() }
        // libcjose also accepts padding and other alphabets.
        guard let signature = Base64URL.decode(token.signature) else { return false }
        switch handle {
        case .jose(let key):
            return token.text.withUnsafeBufferPointer { text in
                text.withMemoryRebound(to: CChar.self) { text in
                    guard let jws = cjose_jws_import(text.baseAddress, text.count, nil) else { return false }
                    defer { cjose_jws_release(jws) }
                    return cjose_jws_verify(jws, key, nil)
                }
            }
        case .openSSL(let key):
            guard signature.count == 64, let context = EVP_MD_CTX_new() else { return false }
            defer { EVP_MD_CTX_free(context) }
            guard EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1 else { return false }
            return token.signed.withUnsafeBufferPointer { signed in
                EVP_DigestVerify(context, signature, signature.count, signed.baseAddress, signed.count) == 1
            }
        }
    }
}

/// A token in the compact serialization (RFC 7515, section 7.1): three parts in base64url.
struct CompactToken: Sendable {
    let text: [UInt8]
    let header: ArraySlice<UInt8>
    let payload: ArraySlice<UInt8>
    let signature: ArraySlice<UInt8>

    /// Returns nil if the text does not have exactly three parts.
    init?(_ text: [UInt8]) {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        self.text = text
        (header, payload, signature) = (parts[0], parts[1], parts[2])
    }

    /// The signed part of the text.
    var signed: ArraySlice<UInt8> { text[..<payload.endIndex] }

    /// Returns whether a text may be a compact token, rather than an opaque token.
    static func isLikely(_ text: String) -> Bool { text.utf8.count { $0 == UInt8(ascii: ".") } == 2 }
}
