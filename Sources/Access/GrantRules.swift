import Coaty

/// The kinds of names in a grant. Raw values are the keys.
enum GrantDimension: String, CaseIterable {
    case types, channels, operations, topics, contexts
}

/// The roots that a `where` can test. Raw values are the first names of properties.
enum GrantRoot: String, CaseIterable {
    case object, request, principal
}

/// The allowed content of a grant for one pattern of a verb.
struct GrantRule {
    /// The names that a grant must have; nil if the pattern has no names.
    var dimension: GrantDimension?
    /// The root that a `where` can test in addition to the principal; nil if there is none.
    var root: GrantRoot?
    /// Whether the pattern affects things that principals own, so that `others` is allowed.
    var hasOwners = false
    /// Whether `retain` is allowed.
    var isRetainable = false
    /// Whether the names become levels of topics, so that entries that are invalid in a topic are refused.
    var isOnTopic = false
}

extension Verb {
    /// The patterns of grants of the verb, in the order of error messages.
    var patterns: [AccessPattern] { AccessPattern.allCases.filter { rule(of: $0) != nil } }

    /// Returns the allowed content of a grant for a pattern; nil if the verb does not have the pattern.
    func rule(of pattern: AccessPattern) -> GrantRule? {
        switch (self, pattern) {
        case (.publish, .advertise):
            GrantRule(dimension: .types, root: .object, hasOwners: true, isOnTopic: true)
        case (.publish, .deadvertise): GrantRule(dimension: .types, root: .object, hasOwners: true)
        case (.publish, .channel), (.observe, .channel):
            GrantRule(dimension: .channels, root: .object, isOnTopic: true)
        case (.publish, .raw): GrantRule(dimension: .topics, isRetainable: true)
        case (.publish, .iovalue): GrantRule(dimension: .contexts, hasOwners: true)

        case (.request, .discover), (.request, .query): GrantRule(dimension: .types, root: .object)
        case (.request, .update): GrantRule(dimension: .types, root: .object, hasOwners: true, isOnTopic: true)
        case (.request, .call), (.observe, .call), (.answer, .call):
            GrantRule(dimension: .operations, root: .request, isOnTopic: true)

        case (.observe, .advertise), (.observe, .deadvertise), (.observe, .update):
            GrantRule(dimension: .types, root: .object)
        case (.observe, .discover), (.observe, .query): GrantRule(dimension: .types, root: .request)
        case (.observe, .associate), (.observe, .routing): GrantRule(dimension: .contexts, isOnTopic: true)
        case (.observe, .iovalue), (.observe, .iostate): GrantRule(dimension: .contexts, hasOwners: true)
        case (.observe, .raw): GrantRule(dimension: .topics)
        case (.observe, .traffic): GrantRule()

        case (.answer, .discover), (.answer, .query), (.answer, .update): GrantRule(dimension: .types, root: .object)

        case (.read, .objects): GrantRule(dimension: .types, root: .object)
        case (.read, .agents): GrantRule(root: .object)
        case (.read, .status), (.read, .info): GrantRule()
        case (.read, .nodes): GrantRule(dimension: .contexts, root: .object, hasOwners: true)
        case (.read, .contexts): GrantRule(dimension: .contexts)

        case (.route, _): GrantRule(dimension: .contexts)
        case (.register, .nodes): GrantRule(dimension: .contexts, root: .object, hasOwners: true)
        case (.register, .identity), (.administer, .clients), (.administer, .gateway): GrantRule()
        default: nil
        }
    }
}

extension AccessTarget {
    /// The names of a grant that the target is compared with; nil if it has none.
    var dimension: GrantDimension? {
        switch self {
        case .none, .client: nil
        case .object, .coreType, .objectType, .anyObject: .types
        case .channel: .channels
        case .operation, .anyOperation: .operations
        case .topic, .topicFilter: .topics
        case .context, .anyContext: .contexts
        }
    }
}

extension CoreType {
    /// Whether objects of the core type belong to agents and to IO routing. A wildcard does not allow clients to
    /// publish or update them.
    var isReserved: Bool {
        switch self {
        case .Identity, .IoNode, .IoSource, .IoActor, .IoContext: true
        default: false
        }
    }
}

extension AccessRequest {
    /// Whether a grant must list reserved core types explicitly.
    var protectsReservedTypes: Bool { verb == .publish || verb == .request && pattern == .update }
}
