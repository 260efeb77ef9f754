import Coaty
import TestSupport
import Testing

@testable import Access
@testable import Base

/// The description of a client's own permissions.
@Suite(.exclusive) struct AccessExplanationTests {
    private let grants = #"""
        [{"observe":["advertise"],"types":["com.a"],"where":["object.site",["Equals",{"property":"principal.site"}]]},
         {"publish":["channel"],"channels":["*"]}]
        """#

    private func explain(_ request: AccessRequest) throws -> AccessExplanation {
        AccessExplanation(try Policy.permissions(grants, attributes: #"{"site":"hall-1"}"#), request)
    }

    private func text(_ json: [UInt8]) throws -> String {
        _ = try JSONDocument(json)
        return String(decoding: json, as: UTF8.self)
    }

    @Test func decisionsAreExplained() throws {
        let channel = AccessRequest(verb: .publish, pattern: .channel, target: .channel(WireName("hall")))
        #expect(try explain(channel).text == "allowed by r#2\n")
        #expect(try text(explain(channel).json) == #"{"decision":"allowed","grants":["r#2"]}"#)

        var advertise = AccessRequest(verb: .observe, pattern: .advertise, target: .objectType(WireName("com.a")))
        #expect(try explain(advertise).decision == .conditional)
        #expect(try text(explain(advertise).json) == #"{"decision":"conditional","grants":["r#1"]}"#)

        advertise.object = try JSONView(text: #"{"site":"hall-2"}"#)
        let missing = "- observe: [\"advertise\"]\n  types: [\"com.a\"]\n"
        #expect(
            try explain(advertise).text
                == "denied: the condition is not true: r#1\nThis grant would allow it:\n\(missing)"
        )
        let json = try text(explain(advertise).json)
        #expect(json.hasPrefix(#"{"decision":"denied","grants":["r#1"],"missing":"- observe: [\"advertise\"]"#))

        advertise.object = try JSONView(text: #"{"site":"hall-1"}"#)
        #expect(try explain(advertise).grants == ["r#1"])

        let status = AccessRequest(verb: .read, pattern: .status)
        #expect(try explain(status).text == "denied: no grant\nThis grant would allow it:\n- read: [\"status\"]\n")
        let free = AccessExplanation(.unrestricted, status)
        #expect(free.decision == .allowed && free.grants == [] && free.text == "allowed: access is not restricted\n")
    }

    @Test func permissionsAreListedAsConfigured() throws {
        let permissions = try Policy.permissions(grants, attributes: #"{"site":"hall-1"}"#)
        let token = Principal(.token("t"), address: "", under: .open)
        let view = try JSONView(text: text(permissions.json(of: token)))
        let grant: AnyCodable = [
            "role": "r", "observe": ["advertise"], "types": ["com.a"],
            "where": ["object.site", ["Equals", ["property": "principal.site"]]],
        ]
        #expect(
            AnyCodable(view) == [
                "name": "t", "credentials": "token", "roles": ["r"], "attributes": ["site": "hall-1"],
                "unrestricted": false,
                "grants": [grant, ["role": "r", "publish": ["channel"], "channels": ["*"]]],
            ]
        )
        let anonymous = Principal(.anonymous, address: "", under: .open)
        let open = try text(Permissions.unrestricted.json(of: anonymous))
        #expect(open == #"{"name":null,"roles":[],"attributes":{},"unrestricted":true,"grants":[]}"#)
    }
}
