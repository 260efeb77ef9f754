import Base
import Coaty
import Logging
import ProblemDetails
import Synchronization

/// Verifies JSON Web Tokens (RFC 7519, RFC 9068) and derives principals from their claims.
package final class TokenVerifier: Sendable {
    /// Maximum difference between the clocks of the gateway and of the provider, in seconds.
    static let leeway = 30.0
    /// Maximum number of seconds after which a client is asked to come again.
    private static let longestWait = 86400.0
    /// The types of tokens (RFC 7519, section 5.1; RFC 9068, section 2.1), in lower case.
    private static let types: Set<String> = ["jwt", "at+jwt", "application/at+jwt"]
    private static let maximumKeyId = 256

    /// The reason why a token is refused.
    enum Refusal: Error, Equatable {
        case invalid(String)
        /// The token is valid, but has expired.
        case expired
        /// The token is valid, but not yet: it becomes valid after this number of seconds, a day at most.
        case notYetValid(seconds: Int)
        /// No keys are loaded yet.
        case keysNotLoaded
        /// No key matches, and the keys are fetched again. `id` is the token's key id, `fetched` the time of the keys
        /// that do not match.
        case keyUnknown(id: String?, fetched: KeyStore.Instant?, retryAfter: Duration)
    }

    package let configuration: JWTConfiguration
    package let keys: KeyStore
    /// Maximum size of a token, in bytes.
    private let maximumSize: Int
    /// This lock is a leaf.
    private let verified: Mutex<ExpiringTable<TokenDigest, Principal.Authenticated>>

    /// - Parameter keys: the keys of the provider.
    init(_ configuration: JWTConfiguration, keys: KeyStore, limits: Limits = Limits()) {
        maximumSize = limits.tokenSize
        self.configuration = configuration
        self.keys = keys
        verified = Mutex(ExpiringTable(lifetime: .seconds(3600), capacity: limits.verifiedTokens))
    }

    /// Returns the principal of a token.
    ///
    /// - Parameter now: the current time, in seconds since 1970.
    /// - Throws: ``Refusal``
    func authenticate(
        _ token: String,
        at now: Double = CoatyTimestamp.nowMillis() / 1000
    ) throws(Refusal) -> Principal.Authenticated {
        guard token.utf8.count <= maximumSize else {
            throw .invalid("The token is larger than \(maximumSize) bytes.")
        }
        let digest = TokenDigest(of: token)
        if let known = verified.withLock({ $0.entry(digest, at: .now)?.value }), known.validity?.isValid ?? false {
            return known
        }
        guard let compact = CompactToken(Array(token.utf8)) else { throw .invalid("The token has not three parts.") }
        let key = try verify(compact, digest)
        let claims = try Self.document(compact.payload, "payload")
        let authenticated = try principal(claims, key, at: now)
        verified.withLock { $0.insert(digest, authenticated, at: .now) }
        return authenticated
    }

    // MARK: - Signature

    /// Verifies the signature.
    ///
    /// - Returns: the key that has signed the token.
    private func verify(_ token: CompactToken, _ digest: TokenDigest) throws(Refusal) -> VerificationKey {
        let header = try Self.document(token.header, "header")
        // No other member of the header is read: `jku`, `x5u`, `jwk` and `x5c` would let the token choose its key.
        guard header["crit"] == nil else { throw .invalid("The header has crit, which the gateway does not know.") }
        if let type = header["typ"] {
            guard let text = type.string, Self.types.contains(text.lowercased()) else {
                throw .invalid("The typ is neither JWT nor at+jwt.")
            }
        }
        guard let algorithm = header["alg"]?.string.flatMap(SignatureAlgorithm.init(rawValue:)),
            configuration.algorithms.contains(algorithm)
        else { throw .invalid("The alg is not allowed.") }
        var id: String?
        if let view = header["kid"] {
            guard let text = view.string, text.utf8.count <= Self.maximumKeyId else {
                throw .invalid("The kid is no short text.")
            }
            id = text
        }
        guard let (set, fetched) = keys.loaded else { throw .keysNotLoaded }
        // The type of the key determines the algorithm: a token can't make the gateway use a public key as a secret.
        let candidates = set.candidates(id, algorithm)
        if let key = candidates.first(where: { $0.verifies(token) }) { return key }
        // Some providers give a new key the id of the old one.
        var question = KeyStore.Question.token(digest)
        if let id, candidates.isEmpty, !set.keys.contains(where: { $0.id == id }) { question = .id(id) }
        if let pause = keys.ask(question, fetched: fetched) {
            throw .keyUnknown(id: id, fetched: fetched, retryAfter: pause)
        }
        throw .invalid(
            candidates.isEmpty ? "No key fits the alg and kid of the token." : "The signature is wrong."
        )
    }

    private static func document(_ part: ArraySlice<UInt8>, _ name: String) throws(Refusal) -> JSONView {
        guard let text = Base64URL.decode(part), let view = try? JSONDocument(text).root, view.kind == .object else {
            throw .invalid("The \(name) is no JSON object in base64url.")
        }
        // Other receivers may use a different duplicate than the gateway.
        guard view.duplicateMember == nil else { throw .invalid("The \(name) has a member twice.") }
        return view
    }

    // MARK: - Claims

    private func principal(
        _ claims: JSONView,
        _ key: VerificationKey,
        at now: Double
    ) throws(Refusal) -> Principal.Authenticated {
        guard claims["iss"]?.string == configuration.issuer else {
            throw .invalid("The iss is not the configured one.")
        }
        let audiences = claims["aud"].map { $0.kind == .array ? $0.elements.compactMap(\.string) : [$0.string ?? ""] }
        guard audiences?.contains(where: configuration.audiences.contains) ?? false else {
            throw .invalid("The token is for another audience.")
        }
        guard let expires = claims["exp"]?.number, expires.isFinite else { throw .invalid("The exp is no number.") }
        if let view = claims["nbf"] {
            guard let begin = view.number, begin.isFinite else { throw .invalid("The nbf is no number.") }
            let wait = begin - Self.leeway - now
            guard wait <= 0 else { throw .notYetValid(seconds: Int(min(wait, Self.longestWait).rounded(.up))) }
        }
        guard now < expires + Self.leeway else { throw .expired }
        guard let name = claims["sub"]?.string, AccessConfiguration.isName(name) else {
            throw .invalid("The sub is no text of 1 to \(AccessConfiguration.maximumName) bytes.")
        }
        return Principal.Authenticated(
            subject: .user(issuer: configuration.issuer, name: name),
            granted: .init(
                roles: roles(claims),
                attributes: try attributes(claims),
                configuration: configuration
            ),
            validity: Validity(until: expires, leeway: Self.leeway, at: now, key.revocation)
        )
    }

    /// Returns the names in the claim of roles: a list, or a text of names separated by spaces, like `scope`.
    private func roles(_ claims: JSONView) -> [String] {
        guard let path = configuration.roles else { return [] }
        var view: JSONView? = claims
        for name in path { view = view?.member(named: name) }
        guard let view else { return [] }
        if let text = view.string { return text.split(separator: " ").map(String.init) }
        return view.elements.compactMap(\.string)
    }

    /// Returns the JSON text of the claims that conditions can test.
    private func attributes(_ claims: JSONView) throws(Refusal) -> [UInt8] {
        var text = Array("{".utf8)
        for (key, value) in claims.members {
            guard let name = key.string,
                configuration.attributes?.contains(name) ?? !JWTConfiguration.tokenClaims.contains(name)
            else { continue }
            if text.count > 1 { text.append(UInt8(ascii: ",")) }
            text += key.bytes
            text.append(UInt8(ascii: ":"))
            text += value.bytes
        }
        text.append(UInt8(ascii: "}"))
        guard text.count <= AccessConfiguration.maximumAttributes else {
            throw .invalid("The attributes have more than \(AccessConfiguration.maximumAttributes) bytes.")
        }
        guard (try? claims.checkValues()) != nil else { throw .invalid("A number in the payload is too large.") }
        return text
    }
}

extension Problem {
    /// Whether the client's token becomes valid later.
    package var isTokenNotYetValid: Bool { type == Problems.tokenNotYetValid }
}

extension Problems {
    fileprivate static let tokenNotYetValid = typePrefix + "token-not-yet-valid"

    /// Returns the problem if the keys of the identity provider are not loaded, or do not contain a new token's key
    /// yet.
    static func keysNotLoaded(retryAfter pause: Duration) -> Problem {
        Problem(
            type: typePrefix + "keys-not-loaded",
            title: "Keys not loaded",
            status: 503,
            detail: "The gateway does not have the keys to verify the token yet.",
            headers: [("Retry-After", String(max(1, Int((pause / .seconds(1)).rounded(.up)))))]
        )
    }

    /// Returns the problem of a token whose `nbf` is ahead of the gateway's clock. With the same token, the client
    /// succeeds later.
    static func tokenNotYetValid(seconds: Int) -> Problem {
        let error = #"Bearer error="invalid_token", error_description="valid in \#(seconds) seconds""#
        return Problem(
            type: tokenNotYetValid,
            title: "Token not yet valid",
            status: 401,
            detail: "The token becomes valid in \(seconds) seconds by the gateway's clock.",
            members: [("retryAfter", .integer(seconds * 1000))],
            headers: [("WWW-Authenticate", error), ("Retry-After", "\(seconds)")]
        )
    }

    /// - Parameter reason: a sentence, in ASCII.
    static func invalidToken(_ reason: String) -> Problem {
        var problem = unauthorized(reason)
        problem.headers = [("WWW-Authenticate", #"Bearer error="invalid_token", error_description="\#(reason)""#)]
        return problem
    }
}
