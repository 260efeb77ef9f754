import Coaty
import CoatyMQTT

/// One grant of a role: the operation that it allows, the names, and the condition.
package struct Grant: Sendable {
    /// The role that has the grant.
    let role: String
    /// Its position among the grants of the role, from 1.
    let number: Int
    let verb: Verb
    /// Empty for a grant to route, which applies to every pattern.
    let patterns: [AccessPattern]
    let types: NameSet?
    let channels: NameSet?
    let operations: NameSet?
    let contexts: NameSet?
    /// The topic filters, with resolved wildcards of names.
    let topics: [String]
    let condition: CompiledCondition?
    /// Whether it also applies to what other principals own.
    let includesOthers: Bool
    /// Whether it allows to publish retained messages.
    let includesRetained: Bool
    /// Whether the condition tests the name of the principal.
    let usesPrincipalName: Bool
    /// The grant's JSON text, as configured.
    let source: [UInt8]

    /// The grant's name in the audit log and in explanations, such as `viewer#1`.
    var name: String { "\(role)#\(number)" }

    /// Returns whether the grant is for a pattern, whatever its names.
    func applies(to verb: Verb, _ pattern: AccessPattern) -> Bool {
        self.verb == verb && (verb == .route || patterns.contains(pattern))
    }

    /// Returns whether the grant covers all of a request, except for its condition.
    ///
    /// - Parameter topics: the topic filters of the grant.
    func covers(_ request: AccessRequest, topics: [TopicPattern], _ dialect: TopicDialect) -> Bool {
        guard applies(to: request.verb, request.pattern),
            includesOthers || !request.isOfOthers, includesRetained || !request.isRetained,
            request.verb.rule(of: request.pattern)?.dimension == request.target.dimension
        else { return false }
        return switch request.target {
        case .none, .client: true
        case .channel(let name): channels?.contains(name) ?? false
        case .operation(let name): operations?.contains(name) ?? false
        case .anyOperation: operations?.containsAll ?? false
        case .context(let name): contexts?.contains(name) ?? false
        case .anyContext: contexts?.containsAll ?? false
        case .topic(let topic): topics.contains { $0.covers(topic: topic, dialect) }
        case .topicFilter(let filter): topics.contains { $0.covers(filter: filter, dialect) }
        case .object, .coreType, .objectType, .anyObject: coversType(request)
        }
    }

    private func coversType(_ request: AccessRequest) -> Bool {
        guard let types else { return false }
        switch request.target {
        case .object(let coreType, _) where coreType.isReserved && request.protectsReservedTypes,
            .coreType(let coreType) where coreType.isReserved && request.protectsReservedTypes:
            return types.contains(literally: coreType)
        case .objectType(let objectType) where request.protectsReservedTypes:
            guard let coreType = CoreType(objectType: objectType.text), coreType.isReserved else {
                return types.contains(objectType)
            }
            return types.contains(literally: coreType)
        // An object type of a reserved core type: agents that observe the object type treat the object as one of that
        // core type.
        case .object(_, let objectType) where request.protectsReservedTypes && objectType.isOfReservedType:
            return CoreType(objectType: objectType.text).map(types.contains(literally:)) ?? false
        case .object(let coreType, let objectType):
            return types.contains(objectType) || types.contains(literally: coreType)
        case .coreType(let coreType): return types.containsAll || types.contains(literally: coreType)
        case .objectType(let objectType): return types.contains(objectType)
        // A condition cannot be evaluated for unknown objects.
        case .anyObject: return types.containsAll && (condition == nil || request.verb != .publish)
        default: return false
        }
    }
}

extension WireName {
    fileprivate var isOfReservedType: Bool { CoreType(objectType: text)?.isReserved ?? false }
}

extension Grant: Equatable {
    /// Compares the texts byte by byte.
    package static func == (left: Grant, right: Grant) -> Bool {
        left.number == right.number && left.role.utf8.elementsEqual(right.role.utf8) && left.source == right.source
    }
}
