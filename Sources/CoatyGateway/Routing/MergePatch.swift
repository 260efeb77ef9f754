import Coaty

/// JSON merge patch (RFC 7396).
enum MergePatch {
    static func apply(_ patch: AnyCodable, to target: AnyCodable) -> AnyCodable {
        guard case .object(let changes) = patch else { return patch }
        var members: [String: AnyCodable] = [:]
        if case .object(let old) = target { members = old }
        for (name, value) in changes {
            members[name] = value == .null ? nil : apply(value, to: members[name] ?? .null)
        }
        return .object(members)
    }
}
