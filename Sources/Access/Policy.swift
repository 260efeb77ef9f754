import Base
import Coaty
package import CoatyMQTT
import Synchronization

/// The configured access policy. Immutable: a reload creates a new one.
package final class Policy: Sendable {
    /// The policy without configured access: all clients have all permissions.
    package static let open = Policy()

    /// The values that permissions depend on, in addition to the grants of roles.
    fileprivate struct Identity: Hashable {
        let roles: [WireName]
        let attributes: [UInt8]
        /// Set only if a condition tests it; otherwise tokens share permissions.
        let name: WireName?
    }

    /// Distinguishes policies, also from those that no longer exist.
    package let serial = Policy.lastSerial.add(1, ordering: .relaxed).newValue
    private static let lastSerial = Atomic<UInt64>(0)

    private let configuration: AccessConfiguration?
    private let dialect: TopicDialect
    private let maximumSteps: Int
    private let interned: [Identity: Permissions]
    private let subjects: [Principal.Subject: Permissions]
    private let tokens: [TokenDigest: AccessConfiguration.Token]
    /// Verifies the tokens of an identity provider; nil if none is configured.
    package let verifier: TokenVerifier?
    /// The rate limits of clients; nil if there are none.
    package let limits: RateConfiguration?
    /// The permissions of users of the identity provider and of certificates. Its lock is a leaf.
    private let granted: Mutex<GrantedPermissions>

    private init() {
        configuration = nil
        dialect = .plain
        maximumSteps = 0
        interned = [:]
        subjects = [:]
        tokens = [:]
        verifier = nil
        limits = nil
        granted = Mutex(GrantedPermissions())
    }

    /// - Parameters:
    ///   - maximumSteps: the maximum number of evaluation steps of a `where`.
    ///   - verifier: verifies tokens as configured in `configuration.jwt`.
    ///   - old: the policy that this one replaces. Unchanged permissions stay the same objects.
    package init(
        _ configuration: AccessConfiguration,
        dialect: TopicDialect,
        maximumSteps: Int = Limits().filterSteps,
        verifier: TokenVerifier? = nil,
        replacing old: Policy? = nil
    ) {
        self.verifier = verifier
        limits = configuration.limits
        self.configuration = configuration
        self.dialect = dialect
        self.maximumSteps = maximumSteps
        let unchanged = Self.unchangedRoles(old, configuration, dialect)
        var interned: [Identity: Permissions] = [:]
        func permissions(_ roles: [String], _ attributes: [UInt8], _ name: String?) -> Permissions {
            let (identity, make) = Self.identity(configuration, dialect, maximumSteps, roles, attributes, name)
            if let known = interned[identity] { return known }
            let result = (roles.allSatisfy(unchanged.contains) ? old?.interned[identity] : nil) ?? make()
            interned[identity] = result
            return result
        }
        var subjects: [Principal.Subject: Permissions] = [:]
        var tokens: [TokenDigest: AccessConfiguration.Token] = [:]
        if !configuration.anonymous.isEmpty {
            subjects[.anonymous] = permissions(configuration.anonymous, Array("{}".utf8), nil)
        }
        for token in configuration.tokens {
            subjects[.token(token.name)] = permissions(token.roles, token.attributes, token.name)
            for digest in token.digests { tokens[digest] = token }
        }
        self.interned = interned
        self.subjects = subjects
        self.tokens = tokens
        let kept = old?.granted.withLock { $0.kept { $0.roles.allSatisfy(unchanged.contains) } }
        granted = Mutex(kept ?? GrantedPermissions())
    }

    /// Whether all clients have all permissions.
    package var isOpen: Bool { configuration == nil }

    /// Returns the token with a digest; nil if there is none.
    func token(digest: TokenDigest) -> AccessConfiguration.Token? { tokens[digest] }

    /// Returns the permissions of a subject of the configuration; nil if the token does not exist, or if clients
    /// without a token have no role.
    package func permissions(of subject: Principal.Subject) -> Permissions? {
        isOpen ? .unrestricted : subjects[subject]
    }

    /// Returns the permissions of the owner of IO nodes and objects. They stay with the name of a token that is replaced.
    ///
    /// - Returns: nil if the owner has no permissions.
    package func permissions(ofOwner owner: Principal) -> Permissions? {
        if case .token = owner.subject { permissions(of: owner.subject) } else { owner.permissions(under: self) }
    }

    /// Returns the permissions of an authenticated client; nil if its token was removed, replaced or verified under
    /// another configuration, its certificate has no role, or it has no token and clients without a token have no role.
    package func permissions(of authenticated: Principal.Authenticated) -> Permissions? {
        guard let configuration else { return .unrestricted }
        switch authenticated.subject {
        case .user(_, let name):
            guard let granted = authenticated.granted else { return nil }
            return permissions(ofUser: name, granted, under: configuration)
        case .certificate(let name):
            guard let entry = configuration.certificate(named: name) else { return nil }
            return permissions(entry.roles, entry.attributes, name, under: configuration)
        case .token(let name):
            if let token = authenticated.token, tokens[token]?.name != name { return nil }
            return permissions(of: authenticated.subject)
        case .anonymous: return permissions(of: authenticated.subject)
        }
    }

    private func permissions(
        ofUser name: String,
        _ granted: Principal.Granted,
        under configuration: AccessConfiguration
    ) -> Permissions? {
        guard let jwt = configuration.jwt, jwt == granted.configuration else { return nil }
        var roles: [String] = []
        for role in granted.roles {
            // The built-in role is granted only by the configured name, because a provider may have its own role
            // `admin`.
            let name = role == jwt.admin ? AccessConfiguration.admin : role
            guard role == jwt.admin || configuration.roles[name] != nil, !roles.contains(name) else { continue }
            roles.append(name)
        }
        return permissions(roles, granted.attributes, name, under: configuration)
    }

    /// Returns the permissions of a principal that the configuration does not list individually.
    private func permissions(
        _ roles: [String],
        _ attributes: [UInt8],
        _ name: String,
        under configuration: AccessConfiguration
    ) -> Permissions {
        let (identity, make) = Self.identity(configuration, dialect, maximumSteps, roles, attributes, name)
        return granted.withLock { $0.permissions(identity, make) }
    }

    /// Returns the identity of permissions, and a function that creates them.
    private static func identity(
        _ configuration: AccessConfiguration,
        _ dialect: TopicDialect,
        _ maximumSteps: Int,
        _ roles: [String],
        _ attributes: [UInt8],
        _ name: String?
    ) -> (Identity, () -> Permissions) {
        let grants = roles.flatMap { configuration.roles[$0] ?? [] }
        let name = grants.contains(where: \.usesPrincipalName) ? name : nil
        let identity = Identity(roles: roles.map(WireName.init), attributes: attributes, name: name.map(WireName.init))
        return (
            identity,
            {
                Permissions(
                    roles: roles,
                    grants: grants,
                    attributes: attributes,
                    name: name,
                    dialect: dialect,
                    maximumSteps: maximumSteps
                )
            }
        )
    }

    /// Returns the roles that have the same grants under both policies.
    private static func unchangedRoles(
        _ old: Policy?,
        _ new: AccessConfiguration,
        _ dialect: TopicDialect
    ) -> Set<String> {
        guard let old, let roles = old.configuration?.roles, old.dialect == dialect else { return [] }
        let unchanged = new.roles.filter { roles[$0.key] == $0.value }
        return Set(unchanged.keys).union([AccessConfiguration.admin])
    }
}

/// Permissions that exist as long as a principal uses them, so that equal ones are the same object.
///
/// The number of users and certificates is unlimited, so unused permissions are removed.
private struct GrantedPermissions: Sendable {
    private static let minimumSweep = 64

    private struct Entry: Sendable {
        weak var permissions: Permissions?
    }

    private var entries: [Policy.Identity: Entry] = [:]
    /// The number of entries at which unused ones are removed.
    private var sweep = minimumSweep

    mutating func permissions(_ identity: Policy.Identity, _ make: () -> Permissions) -> Permissions {
        if let known = entries[identity]?.permissions { return known }
        if entries.count >= sweep {
            entries = entries.filter { $0.value.permissions != nil }
            sweep = max(Self.minimumSweep, 2 * entries.count)
        }
        let permissions = make()
        entries[identity] = Entry(permissions: permissions)
        return permissions
    }

    /// Returns the entries that another policy can use too.
    func kept(_ isUnchanged: (Permissions) -> Bool) -> GrantedPermissions {
        var kept = GrantedPermissions()
        kept.entries = entries.filter { $0.value.permissions.map(isUnchanged) ?? false }
        return kept
    }
}
