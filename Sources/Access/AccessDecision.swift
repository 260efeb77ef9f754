import Coaty

/// The answer of a policy to one ``AccessRequest``.
package enum AccessDecision: Sendable {
    /// Allowed by the grant at this index of ``Permissions/grants``; nil if the permissions are unrestricted.
    case allowed(grant: Int?)
    case denied(Denial)

    /// Nil if it is allowed.
    package var denial: Denial? {
        if case .denied(let denial) = self { denial } else { nil }
    }
}

/// The answer of a policy to a subscription, or to a request whose answers are checked one by one.
package enum Admission: Sendable {
    /// All events with these names are allowed.
    case everything
    /// Each event must be checked.
    case conditional
    case denied(Denial)
}

/// The reason why a request is denied.
package struct Denial: Sendable {
    let request: AccessRequest
    /// The names of the grants that cover the names of the request, but whose `where` is not true.
    package let failed: [String]

    package init(request: AccessRequest, failed: [String]) {
        self.request = request
        self.failed = failed
    }

    /// YAML of a role's grant that would allow the request.
    ///
    /// It contains names from the client, each escaped so that it matches only itself. It is created on access, because
    /// events are denied more often than reported.
    package var missing: String {
        let dimension = request.target.dimension
        let name = YAMLText.quoted(missingName)
        var lines = ["- \(request.verb.rawValue): [\"\(request.pattern.rawValue)\"]"]
        if request.verb == .route {
            lines = ["- route: [\(name)]"]
        } else if let dimension {
            lines.append("\(dimension.rawValue): [\(name)]")
        }
        if let condition = missingCondition { lines.append("where: \(condition)") }
        if request.isOfOthers { lines.append("others: true") }
        if request.isRetained { lines.append("retain: true") }
        return lines.joined(separator: "\n  ") + "\n"
    }

    /// The entry that covers only the target, as far as there is one.
    private var missingName: String {
        switch request.target {
        case .none, .anyObject, .anyOperation, .anyContext, .client: "*"
        case .object(let coreType, _) where coreType.isReserved && request.protectsReservedTypes: coreType.rawValue
        case .coreType(let coreType): coreType.rawValue
        case .objectType(let name) where request.protectsReservedTypes:
            CoreType(objectType: name.text).flatMap { $0.isReserved ? $0.rawValue : nil }
                ?? NamePattern.escape(name.text)
        case .object(_, let name), .objectType(let name), .channel(let name), .operation(let name), .context(let name):
            NamePattern.escape(name.text)
        case .topic(let topic), .topicFilter(let topic): NamePattern.escape(topic)
        }
    }

    /// An object type with the same text as a core type would grant access to all objects of that core type.
    private var missingCondition: String? {
        guard request.verb.rule(of: request.pattern)?.root == .object else { return nil }
        switch request.target {
        case .object(let coreType, _) where coreType.isReserved && request.protectsReservedTypes: return nil
        case .object(_, let type), .objectType(let type):
            guard CoreType(rawValue: type.text) != nil else { return nil }
            return "[\"object.objectType\", [\"Equals\", \(YAMLText.quoted(type.text))]]"
        default: return nil
        }
    }
}
