import COpenSSL
import Foundation
import Testing

@testable import Access
@testable import Base

/// A private key or a secret that signs tokens like an identity provider: with OpenSSL, whatever algorithm the header
/// states.
final class SigningKey {
    enum Kind: String, CaseIterable {
        case rsa, smallRSA, ec, p384, ed25519, secret
    }

    let id: String?
    private let kind: Kind
    private let key: OpaquePointer
    private let secret: [UInt8]

    init(_ kind: Kind, id: String? = nil, secret: [UInt8] = Array("a secret that has 32 bytes or more".utf8)) throws {
        self.kind = kind
        self.id = id
        self.secret = secret
        if kind == .secret {
            key = try #require(EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, nil, secret, secret.count))
            return
        }
        let type =
            switch kind {
            case .rsa, .smallRSA: EVP_PKEY_RSA
            case .ec, .p384: EVP_PKEY_EC
            case .ed25519, .secret: EVP_PKEY_ED25519
            }
        let context = try #require(EVP_PKEY_CTX_new_id(type, nil))
        defer { EVP_PKEY_CTX_free(context) }
        try #require(EVP_PKEY_keygen_init(context) == 1)
        switch kind {
        case .rsa: try #require(EVP_PKEY_CTX_ctrl_str(context, "rsa_keygen_bits", "2048") == 1)
        case .smallRSA: try #require(EVP_PKEY_CTX_ctrl_str(context, "rsa_keygen_bits", "1024") == 1)
        case .ec: try #require(EVP_PKEY_CTX_set_group_name(context, "P-256") == 1)
        case .p384: try #require(EVP_PKEY_CTX_set_group_name(context, "P-384") == 1)
        case .ed25519, .secret: break
        }
        var made: OpaquePointer?
        try #require(EVP_PKEY_generate(context, &made) == 1)
        key = try #require(made)
    }

    deinit { EVP_PKEY_free(key) }

    /// The algorithm that matches the key.
    var algorithm: String {
        switch kind {
        case .rsa, .smallRSA: "RS256"
        case .ec, .p384: "ES256"
        case .ed25519: "EdDSA"
        case .secret: "HS256"
        }
    }

    /// The public key as PEM.
    var pem: String {
        let stream = BIO_new(BIO_s_mem())
        defer { BIO_free(stream) }
        PEM_write_bio_PUBKEY(stream, key)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = BIO_read(stream, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
    }

    /// Returns the key as a member of a JWK Set.
    ///
    /// - Parameter members: further members.
    func jwk(_ members: String = #","use":"sig""#) throws -> String {
        let id = id.map { #","kid":"\#($0)""# } ?? ""
        if kind == .secret { return #"{"kty":"oct","k":"\#(Self.base64(secret))"\#(id)\#(members)}"# }
        switch try #require(KeySet(Array(pem.utf8)).keys.first).parts {
        case .rsa(let modulus, let exponent):
            return #"{"kty":"RSA","n":"\#(Self.base64(modulus))","e":"\#(Self.base64(exponent))"\#(id)\#(members)}"#
        case .ec(let x, let y):
            return #"{"kty":"EC","crv":"P-256","x":"\#(Self.base64(x))","y":"\#(Self.base64(y))"\#(id)\#(members)}"#
        case .ed25519(let x):
            return #"{"kty":"OKP","crv":"Ed25519","x":"\#(Self.base64(x))"\#(id)\#(members)}"#
        case .secret: return ""
        }
    }

    static func jwks(_ keys: SigningKey...) throws -> [UInt8] {
        Array(#"{"keys":[\#(try keys.map { try $0.jwk() }.joined(separator: ","))]}"#.utf8)
    }

    /// Returns a signed token.
    ///
    /// - Parameters:
    ///   - payload: the JSON text.
    ///   - header: the JSON text; nil for the default.
    func token(_ payload: String, header: String? = nil) throws -> String {
        let header = header ?? #"{"alg":"\#(algorithm)","typ":"JWT"\#(id.map { #","kid":"\#($0)""# } ?? "")}"#
        let signed = Self.base64(Array(header.utf8)) + "." + Self.base64(Array(payload.utf8))
        return signed + "." + Self.base64(try signature(of: Array(signed.utf8)))
    }

    private func signature(of text: [UInt8]) throws -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        try #require(EVP_DigestSignInit(context, nil, kind == .ed25519 ? nil : EVP_sha256(), nil, key) == 1)
        var signature = [UInt8](repeating: 0, count: 1024)
        var count = signature.count
        try #require(EVP_DigestSign(context, &signature, &count, text, text.count) == 1)
        signature = Array(signature.prefix(count))
        guard kind == .ec || kind == .p384 else { return signature }
        // DER encodes two integers in a sequence; JWS only has their bytes (RFC 7518, section 3.4).
        var numbers: [UInt8] = []
        var rest = signature.dropFirst(2)
        for _ in 0..<2 {
            let length = Int(rest[rest.startIndex + 1])
            let number = rest.dropFirst(2).prefix(length).drop { $0 == 0 }
            numbers += [UInt8](repeating: 0, count: max(0, 32 - number.count)) + number
            rest = rest.dropFirst(2 + length)
        }
        return numbers
    }

    static func base64(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
