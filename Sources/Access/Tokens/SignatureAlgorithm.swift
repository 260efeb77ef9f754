/// The signature algorithms of JSON Web Tokens (RFC 7518, 8037) that the gateway can verify.
package enum SignatureAlgorithm: String, CaseIterable, Sendable {
    case rs256 = "RS256"
    case es256 = "ES256"
    case edDSA = "EdDSA"
    /// Only with a secret from a file: whoever can verify such a token can also create one.
    case hs256 = "HS256"

    /// The algorithms that are allowed by default.
    static let asymmetric: Set<SignatureAlgorithm> = [.rs256, .es256, .edDSA]
}
