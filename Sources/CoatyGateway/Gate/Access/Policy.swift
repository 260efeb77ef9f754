import Coaty
import CoatyMQTT
import Synchronization

/// Who may do what, as configured. Immutable: a reload makes a new one.
final class Policy: Sendable {
    /// No configured access: everybody may do everything.
    static let open = Policy()

    /// What permissions depend on, besides the grants of roles.
    fileprivate struct Identity: Hashable {
        let roles: [WireName]
        let attributes: [UInt8]
        /// Only if a condition tests it; otherwise tokens share permissions.
        let name: WireName?
    }

    /// Distinguishes policies, also from those that no longer exist.
    let serial = Policy.lastSerial.add(1, ordering: .relaxed).newValue
    private static let lastSerial = Atomic<UInt64>(0)

    private let configuration: AccessConfiguration?
    private let dialect: TopicDialect
    private let maximumSteps: Int
    private let interned: [Identity: Permissions]
    private let subjects: [Principal.Subject: Permissions]
    private let tokens: [TokenDigest: AccessConfiguration.Token]
    /// Verifies the tokens of an identity provider; nil if none is configured.
    let verifier: TokenVerifier?
    /// How much clients may do in a time; nil if nothing limits that.
    let limits: RateConfiguration?
    /// The permissions that users of the identity provider and certificates have. Its lock is a leaf.
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
    ///   - verifier: verifies tokens as `configuration.jwt` describes them.
    ///   - old: the policy that this one replaces. Permissions that do not change stay the same objects.
    init(
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

    /// Whether everybody may do everything.
    var isOpen: Bool { configuration == nil }

    /// Returns the token with a digest; nil if there is none.
    func token(digest: TokenDigest) -> AccessConfiguration.Token? { tokens[digest] }

    /// Returns what a subject of the configuration may do; nil if the token does not exist, or if clients without a token have no role.
    func permissions(of subject: Principal.Subject) -> Permissions? { isOpen ? .unrestricted : subjects[subject] }

    /// Returns what an authenticated client may do; nil if its token does not exist or was verified under another configuration,
    /// its certificate has no role, or clients without a token have none.
    func permissions(of authenticated: Principal.Authenticated) -> Permissions? {
        guard let configuration else { return .unrestricted }
        switch authenticated.subject {
        case .user(_, let name):
            guard let granted = authenticated.granted else { return nil }
            return permissions(ofUser: name, granted, under: configuration)
        case .certificate(let name):
            guard let entry = configuration.certificate(named: name) else { return nil }
            return permissions(entry.roles, entry.attributes, name, under: configuration)
        case .anonymous, .token: return permissions(of: authenticated.subject)
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
            // The built-in role only by the name that the configuration gives: a provider may have an `admin` of its own.
            let name = role == jwt.admin ? AccessConfiguration.admin : role
            guard role == jwt.admin || configuration.roles[name] != nil, !roles.contains(name) else { continue }
            roles.append(name)
        }
        return permissions(roles, granted.attributes, name, under: configuration)
    }

    /// Returns the permissions of a principal that has no entry of its own in the configuration.
    private func permissions(
        _ roles: [String],
        _ attributes: [UInt8],
        _ name: String,
        under configuration: AccessConfiguration
    ) -> Permissions {
        let (identity, make) = Self.identity(configuration, dialect, maximumSteps, roles, attributes, name)
        return granted.withLock { $0.permissions(identity, make) }
    }

    /// Returns what identifies permissions, and how to make them.
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

    /// Returns the roles that grant the same under both policies.
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

/// Permissions that exist as long as a principal has them, so that equal ones are the same object.
///
/// There is any number of users and certificates, so their permissions are removed again.
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

    /// Returns the entries that another policy may use too.
    func kept(_ isUnchanged: (Permissions) -> Bool) -> GrantedPermissions {
        var kept = GrantedPermissions()
        kept.entries = entries.filter { $0.value.permissions.map(isUnchanged) ?? false }
        return kept
    }
}
