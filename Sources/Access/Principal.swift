package import Base
import Synchronization

/// A client of the gateway on whose behalf an operation is performed. It is determined once per request or connection.
///
/// Its permissions depend on the policy in force, so that a change of the access configuration also applies to open
/// connections.
package final class Principal: Sendable {
    /// The owner of what a client creates.
    package enum Subject: Hashable, Sendable {
        /// All clients without credentials. They share everything they own.
        case anonymous
        /// The clients with the token of this name.
        case token(String)
        /// The clients with a token of an identity provider for this user. Two providers may use the same name for
        /// different users.
        case user(issuer: String, name: String)
        /// The clients with a certificate of this name.
        case certificate(String)

        /// Whether a browser presents the credentials, or none, for every page that it shows, so that a foreign page
        /// could use them.
        package var isAmbient: Bool {
            switch self {
            case .anonymous, .certificate: true
            case .token, .user: false
            }
        }
    }

    /// The roles and attributes of a user from an identity provider. The policy has no other information about the
    /// user.
    package struct Granted: Sendable {
        /// The names of roles, including those that the configuration does not define.
        let roles: [String]
        /// The JSON text of an object.
        let attributes: [UInt8]
        /// The configuration under which the token was verified. Under another one, the token must be presented again.
        let configuration: JWTConfiguration
    }

    /// The result of an authentication, without the client's address.
    package struct Authenticated: Sendable {
        let subject: Subject
        /// The token of the configuration that the client has presented, which a reload can replace; nil for other
        /// credentials.
        var token: TokenDigest?
        /// Nil if the configuration contains the roles and attributes of the subject.
        var granted: Granted?
        /// Nil if the credentials do not expire.
        var validity: Validity?

        package init(subject: Subject, token: TokenDigest? = nil, granted: Granted? = nil, validity: Validity? = nil) {
            self.subject = subject
            self.token = token
            self.granted = granted
            self.validity = validity
        }
    }

    package let authenticated: Authenticated
    /// The IP address of the client, or of the last proxy; empty if it has none.
    package let address: String

    /// The permissions under the policy with this ``Policy/serial``. They are cached to avoid a lookup for each
    /// operation, and to keep permissions alive that only this principal uses. Its lock may be held while that of a
    /// policy is taken.
    private let known: Mutex<Known>

    private struct Known: Sendable {
        let serial: UInt64
        let permissions: Permissions?
        /// Nil if there are no rate limits.
        let rates: Rates?

        init(_ authenticated: Authenticated, _ policy: Policy) {
            let permissions = policy.permissions(of: authenticated)
            serial = policy.serial
            self.permissions = permissions
            rates = policy.limits?.rates(
                roles: permissions?.roles ?? [],
                isAnonymous: authenticated.subject == .anonymous
            )
        }
    }

    /// - Parameter policy: the policy in force.
    package init(_ authenticated: Authenticated, address: String, under policy: Policy) {
        self.authenticated = authenticated
        self.address = address
        known = Mutex(Known(authenticated, policy))
    }

    /// Creates a principal that the configuration lists.
    ///
    /// - Parameter policy: the policy in force.
    package convenience init(_ subject: Subject, address: String, under policy: Policy) {
        self.init(Authenticated(subject: subject), address: address, under: policy)
    }

    package var subject: Subject { authenticated.subject }
    /// Nil if its credentials do not expire.
    package var validity: Validity? { authenticated.validity }
    /// Whether its credentials have neither expired nor been revoked.
    package var isValid: Bool { validity?.isValid ?? true }

    /// Returns its permissions as long as it is valid; nil if its token was removed or replaced, its issuer is not
    /// configured, or clients without a token have no role.
    package func permissions(under policy: Policy) -> Permissions? {
        known.withLock { known in
            if known.serial != policy.serial { known = Known(authenticated, policy) }
            return known.permissions
        }
    }

    /// Returns its rate limits; nil if there are none.
    package func rates(under policy: Policy) -> Rates? {
        guard policy.limits != nil else { return nil }
        return known.withLock { known in
            if known.serial != policy.serial { known = Known(authenticated, policy) }
            return known.rates
        }
    }

    /// The name in the audit log and in `/v1/access`; nil for anonymous clients.
    package var name: String? {
        switch subject {
        case .anonymous: nil
        case .token(let name), .user(_, let name), .certificate(let name): name
        }
    }

    /// The kind of its credentials in the audit log and in `/v1/access`; nil for anonymous clients.
    var credentials: String? {
        switch subject {
        case .anonymous: nil
        case .token: "token"
        case .user: "jwt"
        case .certificate: "certificate"
        }
    }

    /// The identity provider that defines the name; nil if the configuration does.
    package var issuer: String? {
        if case .user(let issuer, _) = subject { issuer } else { nil }
    }
}

/// The validity period of credentials.
package struct Validity: Sendable {
    /// Maximum remaining validity, in seconds. Credentials with a later expiry end then.
    private static let maximumRest = 10 * 366 * 86_400.0

    /// When they expire, in milliseconds since 1970.
    package let expires: Int
    /// When the gateway stops accepting them: later than ``expires`` by the leeway for different clocks.
    let end: ContinuousClock.Instant
    private let revocation: Revocation?

    /// - Parameters:
    ///   - expires: when the credentials expire, in seconds since 1970.
    ///   - leeway: the additional time for which the gateway accepts them, in seconds.
    ///   - now: the current time, in seconds since 1970.
    ///   - revocation: the state of the key that has signed them; nil if it can't be revoked.
    init(until expires: Double, leeway: Double = 0, at now: Double, _ revocation: Revocation? = nil) {
        let expires = min(expires, now + Self.maximumRest)
        self.expires = Int(expires * 1000)
        end = .now + .milliseconds(Int(((expires + leeway - now) * 1000).rounded(.up)))
        self.revocation = revocation
    }

    package var isValid: Bool { .now < end && !(revocation?.isRevoked ?? false) }
}

/// Whether the key that has signed credentials is still trusted.
final class Revocation: Sendable {
    private let revoked = Atomic(false)

    var isRevoked: Bool { revoked.load(ordering: .relaxed) }

    func revoke() { revoked.store(true, ordering: .relaxed) }
}
