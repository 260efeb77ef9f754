import Coaty
import CoatyMQTT
import Synchronization

/// Who may do what, as configured. Immutable: a reload makes a new one.
final class Policy: Sendable {
    /// No configured access: everybody may do everything.
    static let open = Policy()

    /// What permissions depend on, besides the grants of roles.
    private struct Identity: Hashable {
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
    private let interned: [Identity: Permissions]
    private let subjects: [Principal.Subject: Permissions]
    private let tokens: [TokenDigest: AccessConfiguration.Token]

    private init() {
        configuration = nil
        dialect = .plain
        interned = [:]
        subjects = [:]
        tokens = [:]
    }

    /// - Parameter old: the policy that this one replaces. Permissions that do not change stay the same objects.
    init(_ configuration: AccessConfiguration, dialect: TopicDialect, replacing old: Policy? = nil) {
        self.configuration = configuration
        self.dialect = dialect
        let unchanged = Self.unchangedRoles(old, configuration, dialect)
        var interned: [Identity: Permissions] = [:]
        func permissions(_ roles: [String], _ attributes: [UInt8], _ name: String?) -> Permissions {
            let grants = roles.flatMap { configuration.roles[$0] ?? [] }
            let name = grants.contains(where: \.usesPrincipalName) ? name : nil
            let identity = Identity(
                roles: roles.map(WireName.init),
                attributes: attributes,
                name: name.map(WireName.init)
            )
            if let known = interned[identity] { return known }
            let permissions =
                roles.allSatisfy(unchanged.contains) ? old?.interned[identity] : nil
            let result =
                permissions
                ?? Permissions(roles: roles, grants: grants, attributes: attributes, name: name, dialect: dialect)
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
    }

    /// Whether everybody may do everything.
    var isOpen: Bool { configuration == nil }

    /// Returns the token with a digest; nil if there is none.
    func token(digest: TokenDigest) -> AccessConfiguration.Token? { tokens[digest] }

    /// Returns what a subject may do; nil if the token does not exist, or if clients without a token have no role.
    func permissions(of subject: Principal.Subject) -> Permissions? { isOpen ? .unrestricted : subjects[subject] }

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
