package import Coaty
import CoatyMQTT

/// An operation to check without performing it: `{"<verb>":"<pattern>",…}`. Its other members are optional: one of
/// `type`, `coreType`, `channel`, `operation`, `topic` and `context`; `object`, `data`, `others` and `retain`.
///
/// `data` is the payload of a request, which conditions test as `request`: the member can't be called `request`,
/// because that is a verb.
package struct AccessQuestion: Sendable {
    package let request: AccessRequest

    private static let names: Set = ["type", "channel", "operation", "topic", "context"]
    private static let members = names.union(["coreType", "object", "data", "others", "retain"])

    /// - Throws: `PayloadError`
    package init(_ json: JSONView) throws(PayloadError) {
        try json.refuseMembers(besides: Self.members.union(Verb.allCases.map(\.rawValue)))
        let asked = Verb.allCases.compactMap { verb in json.member(named: verb.rawValue).map { (verb, $0) } }
        guard asked.count == 1, let (verb, view) = asked.first else {
            let verbs = Verb.allCases.map(\.rawValue).joined(separator: ", ")
            throw json.invalid("must have one of \(verbs)")
        }
        let patterns = verb == .route ? [.contexts] : verb.patterns
        guard let pattern = view.string.flatMap(AccessPattern.init(rawValue:)), patterns.contains(pattern) else {
            throw view.invalid("must be one of \(patterns.map(\.rawValue).joined(separator: ", "))")
        }
        // Also the names that the pattern does not have.
        for key in Self.names { _ = try Self.name(key, json) }
        let coreType = try Self.coreType(json)
        request = AccessRequest(
            verb: verb,
            pattern: pattern,
            target: try Self.target(json, verb, pattern, coreType),
            object: try Self.payload(json.member(named: "object")),
            request: try Self.payload(json.member(named: "data")),
            isOfOthers: try Self.flag(json["others"]),
            isRetained: try Self.flag(json["retain"])
        )
    }

    private static func flag(_ view: JSONView?) throws(PayloadError) -> Bool {
        guard let view else { return false }
        guard let value = view.bool else { throw view.invalid("must be true or false") }
        return value
    }

    private static func payload(_ view: JSONView?) throws(PayloadError) -> JSONView? {
        if let view, view.kind != .object { throw view.invalid("must be an object") }
        return view
    }

    private static func name(_ key: String, _ json: JSONView) throws(PayloadError) -> String? {
        guard let view = json.member(named: key) else { return nil }
        guard let text = view.string, !text.isEmpty else { throw view.invalid("must be a name") }
        return text
    }

    private static func requiredName(_ key: String, _ json: JSONView) throws(PayloadError) -> String {
        guard let name = try name(key, json) else { throw .invalid(pointer: "/\(key)", reason: "is missing") }
        return name
    }

    private static func coreType(_ json: JSONView) throws(PayloadError) -> CoreType? {
        guard let view = json.member(named: "coreType") else { return nil }
        guard let coreType = view.string.flatMap(CoreType.init(rawValue:)) else {
            throw view.invalid(CoreType.refusal)
        }
        return coreType
    }

    private static func target(
        _ json: JSONView,
        _ verb: Verb,
        _ pattern: AccessPattern,
        _ coreType: CoreType?
    ) throws(PayloadError) -> AccessTarget {
        switch pattern {
        case .advertise, .deadvertise, .discover, .query, .update, .objects:
            if let object = json["object"], object["objectType"] != nil { return AccessRequest.target(of: object) }
            if let type = try name("type", json) { return .objectType(WireName(type)) }
            return coreType.map { .coreType($0) } ?? .anyObject
        case .channel: return .channel(WireName(try requiredName("channel", json)))
        case .call: return try name("operation", json).map { .operation(WireName($0)) } ?? .anyOperation
        case .raw:
            let topic = try requiredName("topic", json)
            return verb == .publish ? .topic(topic) : .topicFilter(topic)
        case .iovalue, .iostate, .associate, .routing, .nodes, .contexts:
            return try name("context", json).map { .context(WireName($0)) } ?? .anyContext
        case .traffic, .agents, .status, .info, .identity, .clients, .gateway: return .none
        }
    }
}
