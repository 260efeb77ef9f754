import Base
import Coaty
import CoatyMQTT
import Synchronization

/// The permissions of one subject: the grants of its roles, and its attributes.
///
/// Interned: equal permissions of a policy, and of the policy that a reload replaces, are the same object. Therefore
/// comparing object identities detects every change.
package final class Permissions: Sendable {
    /// A missing attribute must not allow anything, so `Exists` and `NotExists` are unknown for it.
    private static let openRoots: Set<String> = [GrantRoot.principal.rawValue]

    /// Whether access is open, or the subject has the built-in role `admin`.
    package let isUnrestricted: Bool
    /// Distinguishes permissions, also from those that no longer exist.
    package let serial = Permissions.lastSerial.add(1, ordering: .relaxed).newValue
    let roles: [String]
    /// The grants of all roles, in their order.
    let grants: [Grant]
    /// The attributes of the token: the JSON text of an object.
    let attributes: [UInt8]
    /// The topic filters of each grant.
    private let topics: [[TopicPattern]]
    private let dialect: TopicDialect
    /// Maximum number of evaluation steps of one grant's `where`. A `where` that needs more is not true.
    private let maximumSteps: Int
    /// The value that conditions test as `principal`.
    private let principal: JSONView?

    /// All permissions. Used for all clients if no access is configured.
    static let unrestricted = Permissions(isUnrestricted: true)

    private static let lastSerial = Atomic<UInt64>(0)

    private init(isUnrestricted: Bool) {
        self.isUnrestricted = isUnrestricted
        roles = []
        grants = []
        attributes = Array("{}".utf8)
        topics = []
        dialect = .plain
        maximumSteps = 0
        principal = nil
    }

    /// - Parameters:
    ///   - grants: the grants of the roles.
    ///   - attributes: the JSON text of an object.
    ///   - name: the name of the token, if a condition tests it.
    ///   - maximumSteps: the maximum number of evaluation steps of one grant's `where`.
    init(
        roles: [String],
        grants: [Grant],
        attributes: [UInt8],
        name: String?,
        dialect: TopicDialect,
        maximumSteps: Int
    ) {
        self.maximumSteps = maximumSteps
        isUnrestricted = roles.contains(AccessConfiguration.admin)
        self.roles = roles
        self.grants = grants
        self.attributes = attributes
        self.dialect = dialect
        topics = grants.map { grant in grant.topics.map { TopicPattern($0, dialect) } }
        // If the principal's JSON can't be written, all conditions on it are unknown.
        principal = try? JSONDocument(Self.principal(name, roles, attributes)).root
    }

    /// Decides on one request: a single grant must cover its names, and its `where` must be true.
    package func decide(_ request: AccessRequest) -> AccessDecision {
        if isUnrestricted { return .allowed(grant: nil) }
        var failed: [String] = []
        // A span, because accessing an array would copy an element with all its names.
        let stored = grants
        let grants = stored.span
        for index in grants.indices where grants[index].covers(request, topics: topics[index], dialect) {
            if holds(grants[index].condition, request) { return .allowed(grant: index) }
            failed.append(grants[index].name)
        }
        return .denied(Denial(request: request, failed: failed))
    }

    /// Decides on requests, which must all be allowed.
    ///
    /// - Returns: the first denied request with the reason; nil if none is denied.
    package func firstDenial(of requests: [AccessRequest]) -> (request: AccessRequest, denial: Denial)? {
        var unconditional: AccessRequest?
        for request in requests {
            // Two versions of an object usually have the same names.
            if let unconditional, request.hasSameNames(as: unconditional) { continue }
            switch decide(request) {
            case .allowed(let grant):
                unconditional = grant.flatMap { grants[$0].condition } == nil ? request : nil
            case .denied(let denial): return (request, denial)
            }
        }
        return nil
    }

    /// Decides whether a subscription, or a request whose answers are checked one by one, may start: a single grant
    /// must cover its names. The `where` of that grant is not evaluated.
    package func admit(_ request: AccessRequest) -> Admission {
        if isUnrestricted { return .everything }
        var isConditional = false
        let stored = grants
        let grants = stored.span
        for index in grants.indices where grants[index].covers(request, topics: topics[index], dialect) {
            if grants[index].condition == nil { return .everything }
            isConditional = true
        }
        return isConditional ? .conditional : .denied(Denial(request: request, failed: []))
    }

    /// Returns whether there is a grant for the pattern, whatever its names and condition.
    package func hasGrant(_ verb: Verb, _ pattern: AccessPattern) -> Bool {
        isUnrestricted || grants.contains { $0.applies(to: verb, pattern) }
    }

    /// Returns whether a condition holds. Each grant has its own budget, so that an expensive one does not affect
    /// others.
    private func holds(_ condition: CompiledCondition?, _ request: AccessRequest) -> Bool {
        guard let condition else { return true }
        let rule = request.verb.rule(of: request.pattern)
        func root(_ name: String) -> JSONView? {
            switch GrantRoot(rawValue: name) {
            case .object: rule?.root == .object ? request.object ?? request.parsedObject : nil
            case .request: rule?.root == .request ? request.request : nil
            case .principal: principal
            case nil: nil
            }
        }
        var budget = WorkBudget(steps: maximumSteps)
        return (try? condition.truth(openRoots: Self.openRoots, roots: root, &budget)) == true
    }

    /// Attributes are properties of `principal` too, unless their name is that of a built-in property.
    private static func principal(_ name: String?, _ roles: [String], _ attributes: [UInt8]) throws -> [UInt8] {
        var bytes = Array("{".utf8)
        for (key, value) in try JSONDocument(attributes).root.members {
            guard let text = key.string, !["name", "roles", "attributes"].contains(text) else { continue }
            bytes += Array(key.bytes) + ":".utf8 + Array(value.bytes) + ",".utf8
        }
        if let name {
            bytes += "\"name\":".utf8
            JSONText.append(name, to: &bytes)
            bytes += ",".utf8
        }
        bytes += "\"roles\":".utf8
        JSONText.appendArray(roles, to: &bytes) { JSONText.append($0, to: &$1) }
        bytes += ",\"attributes\":".utf8 + attributes + "}".utf8
        return bytes
    }
}
