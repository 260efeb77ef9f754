import Coaty

/// JSON merge patch (RFC 7396).
enum MergePatch {
    static func apply(_ patch: AnyCodable, to target: AnyCodable) -> AnyCodable {
        guard case .object(let changes) = patch else { return patch }
        var members: [String: AnyCodable] = [:]
        if case .object(let old) = target { members = old }
        for (name, value) in changes {
            // Assigning nil would not remove the member: as an AnyCodable, it is a null.
            if value == .null {
                members.removeValue(forKey: name)
            } else {
                members[name] = apply(value, to: members[name] ?? .null)
            }
        }
        return .object(members)
    }
}
