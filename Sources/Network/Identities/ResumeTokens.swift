import Access
import Base
package import Cluster
import Coaty

/// A client identity that its client may resume on another connection.
struct ResumableIdentity: Sendable {
    let id: CoatyUUID
    /// How often it was resumed.
    var takeovers: Int
}

/// Makes and reads resume tokens, which any gateway of the cluster accepts. Without a cluster, they are valid until the
/// gateway stops.
package struct ResumeTokens: Sendable {
    /// Maximum length of a token, in bytes.
    static let maximumLength = 128

    private let seal: Seal

    /// - Parameter key: nil if the gateway is in no cluster.
    package init(_ key: ClusterKey?) {
        // Swift's default generator is cryptographically secure.
        let secret = { (0..<ClusterKey.length).map { _ in UInt8.random(in: .min ... .max) } }
        seal = Seal(key: key?.derived(.identities) ?? secret())
    }

    /// Returns the token with which a principal can resume an identity.
    func token(_ identity: ResumableIdentity, for subject: Principal.Subject) -> String {
        Base64URL.encode(seal.seal(Array("\(identity.takeovers) \(identity.id.string)".utf8), for: subject.sealContext))
    }

    /// Returns the identity of a token; nil if the token was not made for this principal.
    func identity(_ token: String, for subject: Principal.Subject) -> ResumableIdentity? {
        guard token.utf8.count <= Self.maximumLength, let sealed = Base64URL.decode(token.utf8),
            let text = seal.open(sealed, for: subject.sealContext)
        else { return nil }
        let parts = String(decoding: text, as: UTF8.self).split(separator: " ")
        guard parts.count == 2, let takeovers = Int(parts[0]) else { return nil }
        return ResumableIdentity(id: CoatyUUID(wire: String(parts[1])), takeovers: takeovers)
    }
}

extension Principal.Subject {
    /// Differs for different principals.
    fileprivate var sealContext: [UInt8] {
        let parts =
            switch self {
            case .anonymous: ["anonymous"]
            case .token(let name): ["token", name]
            case .user(let issuer, let name): ["user", issuer, name]
            case .certificate(let name): ["certificate", name]
            }
        return parts.flatMap { Array("\($0.utf8.count):\($0)".utf8) }
    }
}
