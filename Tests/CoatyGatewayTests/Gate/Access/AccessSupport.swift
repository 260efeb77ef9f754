import Coaty
import CoatyMQTT

@testable import Access
@testable import Base

extension JSONView {
    /// Parses a JSON text.
    init(text: String) throws {
        self = try JSONDocument(Array(text.utf8)).root
    }
}

extension AccessConfiguration {
    /// Reads an `access` mapping from JSON.
    init(json: String) throws {
        try self.init(JSONView(text: json))
    }

    /// Creates a configuration with one role `r`, which has these grants, for the token `t` and for anonymous clients.
    init(grants: String, attributes: String = "{}") throws {
        let digest = String(repeating: "a", count: 64)
        try self.init(
            json: """
                {"roles":{"r":\(grants)},"anonymous":["r"],
                 "tokens":[{"name":"t","sha256":"\(digest)","roles":["r"],"attributes":\(attributes)}]}
                """
        )
    }
}

extension Policy {
    struct NoPermissions: Error {}

    /// Returns the permissions of the token `t` with these grants.
    static func permissions(
        _ grants: String,
        attributes: String = "{}",
        anonymous: Bool = false,
        dialect: TopicDialect = .plain
    ) throws -> Permissions {
        let policy = Policy(try AccessConfiguration(grants: grants, attributes: attributes), dialect: dialect)
        guard let found = policy.permissions(of: anonymous ? .anonymous : .token("t")) else { throw NoPermissions() }
        return found
    }
}

extension AccessDecision {
    var isAllowed: Bool {
        if case .allowed = self { true } else { false }
    }
}

extension Admission {
    /// The name of the case.
    var text: String {
        switch self {
        case .everything: "everything"
        case .conditional: "conditional"
        case .denied: "denied"
        }
    }
}

/// JSON values by type.
extension AnyCodable {
    var array: [AnyCodable]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var texts: [String] { array?.compactMap(\.text) ?? [] }

    subscript(name: String) -> AnyCodable? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    subscript(index: Int) -> AnyCodable? {
        if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { nil }
    }
}
