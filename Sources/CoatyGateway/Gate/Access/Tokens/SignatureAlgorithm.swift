/// The signature algorithms of JSON Web Tokens (RFC 7518, 8037) that the gateway can verify.
enum SignatureAlgorithm: String, CaseIterable, Sendable {
    case rs256 = "RS256"
    case es256 = "ES256"
    case edDSA = "EdDSA"
    /// Only with a secret from a file: who verifies such a token can make one, too.
    case hs256 = "HS256"

    /// Those that are allowed unless the configuration names others.
    static let asymmetric: Set<SignatureAlgorithm> = [.rs256, .es256, .edDSA]
}
