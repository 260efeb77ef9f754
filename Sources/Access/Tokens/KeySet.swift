import Base
import COpenSSL
import Coaty

/// The keys of an identity provider.
package struct KeySet: Sendable {
    /// Maximum size of a PEM file or a JWK Set, in bytes.
    static let maximumSize = 1 << 20
    static let maximumKeys = 100
    /// Maximum number of keys that are tried for a token, and of keys with the same algorithm and the same id, or
    /// without an id.
    static let maximumCandidates = 4
    private static let maximumId = 256

    /// The reason why a text contains no usable keys.
    struct Failure: Error, Equatable {
        let reason: String
    }

    package let keys: [VerificationKey]

    /// Reads PEM, or a JWK Set (RFC 7517), or a single JWK.
    ///
    /// - Parameter isPublic: whether others can read the text, so that it must not contain secrets.
    /// - Throws: ``Failure`` if there is no usable key.
    init(_ text: [UInt8], isPublic: Bool = false) throws(Failure) {
        guard text.count <= Self.maximumSize else { throw Failure(reason: "is larger than \(Self.maximumSize) bytes") }
        keys = try text.starts(with: "-----BEGIN ".utf8) ? Self.readPEM(text) : Self.readJWKs(text, isPublic: isPublic)
        try checkThatAllAreTried()
    }

    /// Refuses keys that would never be tried: their valid tokens would be refused.
    private func checkThatAllAreTried() throws(Failure) {
        struct Kind: Hashable {
            let id: String?
            let algorithm: SignatureAlgorithm
        }
        let kinds = Dictionary(grouping: keys) { Kind(id: $0.id, algorithm: $0.algorithm) }
        guard let (kind, alike) = kinds.first(where: { $0.value.count > Self.maximumCandidates }) else { return }
        let name = kind.id == nil ? "without a kid" : "with the same kid"
        throw Failure(
            reason: "has \(alike.count) keys for \(kind.algorithm.rawValue) \(name); at most "
                + "\(Self.maximumCandidates) can be tried for a token"
        )
    }

    /// Replaces another set: keys in both sets stay the same objects, and keys that are only in the other set are
    /// revoked.
    ///
    /// - Returns: the keys to use from now on, and the revoked keys.
    func replacing(_ old: KeySet?) -> (keys: KeySet, revoked: [VerificationKey]) {
        guard let old else { return (self, []) }
        let kept = keys.map { key in old.keys.first { $0.isSame(as: key) } ?? key }
        let revoked = old.keys.filter { key in !kept.contains { $0 === key } }
        for key in revoked { key.revocation.revoke() }
        return (KeySet(keys: kept), revoked)
    }

    private init(keys: [VerificationKey]) { self.keys = keys }

    /// Returns the keys that may have signed a token: those with its id, or if there are none, those without an id. If
    /// the token has no id, keys without an id come first; others are tried as far as ``maximumCandidates`` allows.
    ///
    /// - Parameter id: the key id of the token; nil if it has none.
    /// - Parameter id: the key id that the token names; nil if it names none.
    func candidates(_ id: String?, _ algorithm: SignatureAlgorithm) -> ArraySlice<VerificationKey> {
        let fitting = keys.filter { $0.algorithm == algorithm }
        let anonymous = fitting.filter { $0.id == nil }
        guard let id else { return (anonymous + fitting.filter { $0.id != nil }).prefix(Self.maximumCandidates) }
        let named = fitting.filter { $0.id == id }
        return (named.isEmpty ? anonymous : named).prefix(Self.maximumCandidates)
    }

    // MARK: - JWK

    private static func readJWKs(_ text: [UInt8], isPublic: Bool) throws(Failure) -> [VerificationKey] {
        guard let root = try? JSONDocument(text).root, root.kind == .object else {
            throw Failure(reason: "is neither PEM nor a JWK Set")
        }
        let views = root["keys"].map { Array($0.elements) } ?? [root]
        guard views.count <= maximumKeys else { throw Failure(reason: "has more than \(maximumKeys) keys") }
        var keys: [VerificationKey] = []
        var unusable: String?
        for view in views {
            do throws(VerificationKey.Unusable) {
                // Providers also publish keys for other purposes.
                if let key = try jwk(view, isPublic: isPublic) { keys.append(key) }
            } catch {
                unusable = error.reason
            }
        }
        guard !keys.isEmpty else {
            throw Failure(
                reason: unusable.map { "has no key that can be used: one \($0)" } ?? "has no key that can be used"
            )
        }
        return keys
    }

    /// Returns nil if the key is not for signatures that the gateway verifies.
    private static func jwk(_ view: JSONView, isPublic: Bool) throws(VerificationKey.Unusable) -> VerificationKey? {
        guard view.kind == .object, view.duplicateMember == nil, view["use"] == nil || view["use"]?.string == "sig"
        else { return nil }
        if let operations = view["key_ops"], !operations.elements.contains(where: { $0.string == "verify" }) {
            return nil
        }
        let id = view["kid"]?.string
        guard id?.utf8.count ?? 0 <= maximumId else { return nil }
        func bytes(_ member: JSONView?) -> [UInt8] { member?.string.flatMap { Base64URL.decode(Array($0.utf8)) } ?? [] }
        let parts: VerificationKey.Parts
        switch (view["kty"]?.string, view["crv"]?.string) {
        case ("RSA", _):
            // Without leading zeros, which some providers publish, so that equal keys compare equal.
            parts = .rsa(
                modulus: Array(bytes(view["n"]).drop { $0 == 0 }),
                exponent: Array(bytes(view["e"]).drop { $0 == 0 })
            )
        case ("EC", "P-256"): parts = .ec(x: bytes(view["x"]), y: bytes(view["y"]))
        case ("OKP", "Ed25519"): parts = .ed25519(bytes(view["x"]))
        case ("oct", _) where !isPublic: parts = .secret(bytes(view["k"]))
        default: return nil
        }
        let key = try VerificationKey(id: id, parts)
        if let algorithm = view["alg"], algorithm.string != key.algorithm.rawValue { return nil }
        return key
    }

    // MARK: - PEM

    /// Reads public keys and certificates.
    private static func readPEM(_ text: [UInt8]) throws(Failure) -> [VerificationKey] {
        guard let stream = BIO_new(BIO_s_mem()), BIO_write(stream, text, Int32(text.count)) == text.count else {
            throw Failure(reason: "can't be read")
        }
        defer {
            BIO_free(stream)
            ERR_clear_error()
        }
        var keys: [VerificationKey] = []
        while true {
            var name: UnsafeMutablePointer<CChar>?
            var header: UnsafeMutablePointer<CChar>?
            var data: UnsafeMutablePointer<UInt8>?
            var length = 0
            guard PEM_read_bio(stream, &name, &header, &data, &length) == 1, let name, let data else { break }
            defer {
                for part in [
                    UnsafeMutableRawPointer(name), header.map { UnsafeMutableRawPointer($0) },
                    UnsafeMutableRawPointer(data),
                ] {
                    CRYPTO_free(part, "", 0)
                }
            }
            guard keys.count < maximumKeys else { throw Failure(reason: "has more than \(maximumKeys) keys") }
            do throws(VerificationKey.Unusable) {
                keys.append(try pemKey(String(cString: name), data, length))
            } catch {
                throw Failure(reason: "block \(keys.count + 1) \(error.reason)")
            }
        }
        guard !keys.isEmpty else { throw Failure(reason: "has no PUBLIC KEY or CERTIFICATE") }
        return keys
    }

    private static func pemKey(
        _ label: String,
        _ data: UnsafeMutablePointer<UInt8>,
        _ length: Int
    ) throws(VerificationKey.Unusable) -> VerificationKey {
        var next: UnsafePointer<UInt8>? = UnsafePointer(data)
        let key: OpaquePointer?
        switch label {
        case "PUBLIC KEY": key = d2i_PUBKEY(nil, &next, length)
        case "CERTIFICATE":
            let certificate = d2i_X509(nil, &next, length)
            defer { X509_free(certificate) }
            key = certificate.flatMap { X509_get_pubkey($0) }
        default: throw .init(reason: "is neither PUBLIC KEY nor CERTIFICATE")
        }
        guard let key else { throw .init(reason: "can't be decoded") }
        defer { EVP_PKEY_free(key) }
        func number(_ name: String, length: Int? = nil) -> [UInt8] {
            var number: OpaquePointer?
            guard EVP_PKEY_get_bn_param(key, name, &number) == 1 else { return [] }
            defer { BN_free(number) }
            let count = length ?? Int(BN_num_bits(number) + 7) / 8
            return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
                written = max(0, Int(BN_bn2binpad(number, buffer.baseAddress, Int32(count))))
            }
        }
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA: return try VerificationKey(id: nil, .rsa(modulus: number("n"), exponent: number("e")))
        case EVP_PKEY_EC:
            var group = [CChar](repeating: 0, count: 64)
            var used = 0
            guard EVP_PKEY_get_group_name(key, &group, group.count, &used) == 1,
                group.prefix(used).elementsEqual("prime256v1".utf8.map { CChar($0) })
            else { throw .init(reason: "is not on the curve P-256") }
            return try VerificationKey(id: nil, .ec(x: number("qx", length: 32), y: number("qy", length: 32)))
        case EVP_PKEY_ED25519:
            var bytes = [UInt8](repeating: 0, count: 32)
            var count = bytes.count
            guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1 else {
                throw .init(reason: "can't be decoded")
            }
            return try VerificationKey(id: nil, .ed25519(bytes))
        default: throw .init(reason: "is neither an RSA, a P-256 nor an Ed25519 key")
        }
    }
}
