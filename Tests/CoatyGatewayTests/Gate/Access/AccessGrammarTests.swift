import Coaty
import TestSupport
import Testing

@testable import Access
@testable import Base

/// Errors in the configuration of access, and their locations.
@Suite(.exclusive) struct AccessGrammarTests {
    private static let digest = String(repeating: "0", count: 64)

    private func error(_ json: String) throws -> (pointer: String, reason: String)? {
        let view = try JSONView(text: json)
        do throws(PayloadError) {
            _ = try AccessConfiguration(view)
            return nil
        } catch {
            guard case .invalid(let pointer, let reason) = error else { return ("", "\(error)") }
            return (pointer, reason)
        }
    }

    private func expectError(_ json: String, _ pointer: String, _ reason: String) throws {
        let found = try #require(try error(json), "\(json) is accepted")
        #expect(found.pointer == pointer && found.reason.contains(reason), "\(json): \(found)")
    }

    @Test(arguments: [
        (#"{"publish":["advertise"],"types":["*"]}"#),
        (#"{"publish":["advertise","raw"],"types":["a"],"topics":["a/#"],"others":true,"retain":true}"#),
        (#"{"observe":["advertise","update"],"types":["a*"],"where":["object.site",["Equals",{"property":"principal.site"}]]}"#),
        (#"{"observe":["traffic"]}"#), (#"{"route":["a*"]}"#),
        (#"{"read":["status","info"]}"#), (#"{"read":["agents"],"where":["object.x",["Exists"]]}"#),
        (#"{"answer":["call"],"operations":["\\*\\\\"],"where":["request.x",["In",[1]]]}"#),
        (#"{"administer":["clients"]}"#), (#"{"administer":["gateway"]}"#), (#"{"register":["identity"]}"#),
        (#"{"read":["objects"],"types":["a/b"]}"#),
    ])
    func grantIsAccepted(_ grant: String) throws {
        #expect(throws: Never.self) { try AccessConfiguration(grants: "[\(grant)]") }
    }

    @Test(arguments: [
        ("[]", "", "must be an object"),
        (#"{"publish":["advertise"]}"#, "/types", #"write ["*"]"#),
        (#"{"publish":["raw"]}"#, "/topics", ##"write ["#"]"##),
        (#"{"publish":["advertise"],"types":["*"],"channels":["*"]}"#, "/channels", "no meaning"),
        (#"{"observe":["advertise","channel"],"types":["*"]}"#, "/channels", "missing"),
        (#"{"observe":["traffic"],"types":["*"]}"#, "/types", "no meaning"),
        (#"{"route":["a"],"contexts":["a"]}"#, "/contexts", "no meaning"),
        (#"{"publish":["advertise"],"types":["*"],"deny":true}"#, "/deny", "unknown"),
        (#"{"publish":["advertise"],"types":["*"],"types":["a"]}"#, "/types", "twice"),
        (#"{"publish":[],"types":["*"]}"#, "/publish", "empty"),
        (#"{"publish":"advertise","types":["*"]}"#, "/publish", "array"),
        (#"{"publish":["call"],"operations":["*"]}"#, "/publish/0", "must be one of"),
        (#"{"publish":["advertise","advertise"],"types":["*"]}"#, "/publish/1", "twice"),
        (#"{"publish":["advertise"],"observe":["advertise"],"types":["*"]}"#, "", "must have one of"),
        (#"{"types":["*"]}"#, "", "must have one of"),
        (#"{"publish":["advertise"],"types":[]}"#, "/types", "empty"),
        (#"{"publish":["advertise"],"types":[""]}"#, "/types/0", "non-empty"),
        (#"{"publish":["advertise"],"types":[1]}"#, "/types/0", "non-empty string"),
        (#"{"publish":["advertise"],"types":["a","a*b"]}"#, "/types/1", "last character"),
        (#"{"publish":["advertise"],"types":["**"]}"#, "/types/0", "last character"),
        (#"{"publish":["advertise"],"types":["a\\b"]}"#, "/types/0", "backslash"),
        (#"{"publish":["advertise"],"types":["a\\"]}"#, "/types/0", "backslash"),
        (#"{"publish":["advertise"],"types":["a/b"]}"#, "/types/0", "no such name"),
        (#"{"observe":["channel"],"channels":["hall/*"]}"#, "/channels/0", "no such name"),
        (#"{"request":["call"],"operations":["a+"]}"#, "/operations/0", "no such name"),
        (##"{"route":["a#"]}"##, "/route/0", "no such name"),
        (#"{"observe":["raw"],"topics":["*"]}"#, "/topics/0", "wildcards"),
        (#"{"observe":["raw"],"topics":["a/b*"]}"#, "/topics/0", "wildcards"),
        (##"{"observe":["raw"],"topics":["a/#/b"]}"##, "/topics/0", "topic filter"),
        (#"{"observe":["raw"],"topics":["a+/b"]}"#, "/topics/0", "topic filter"),
        (##"{"observe":["raw"],"topics":["coaty/#"]}"##, "/topics/0", "topic filter"),
        (#"{"publish":["channel"],"channels":["*"],"others":true}"#, "/others", "no meaning"),
        (#"{"publish":["advertise"],"types":["*"],"others":false}"#, "/others", "must be true"),
        (#"{"observe":["raw"],"topics":["a"],"retain":true}"#, "/retain", "no meaning"),
        (#"{"publish":["raw"],"topics":["a"],"where":["object.x",["Exists"]]}"#, "/where", "cannot be judged"),
        (
            #"{"publish":["advertise","raw"],"types":["*"],"topics":["a"],"where":["object.x",["Exists"]]}"#, "/where",
            "cannot be judged"
        ),
        (#"{"read":["status"],"where":["principal.x",["Exists"]]}"#, "/where", "cannot be judged"),
        (#"{"publish":["advertise"],"types":["*"],"where":["site",["Exists"]]}"#, "/where/0", "object, principal"),
        (#"{"publish":["advertise"],"types":["*"],"where":["request.x",["Exists"]]}"#, "/where/0", "object, principal"),
        (
            #"{"observe":["advertise","call"],"types":["*"],"operations":["*"],"where":["object.x",["Exists"]]}"#,
            "/where/0", "one of principal"
        ),
        (
            #"{"publish":["channel"],"channels":["*"],"where":{"and":[["object.a",["Equals",{"property":"b"}]]]}}"#,
            "/where/and/0/1/1/property", "object, principal"
        ),
        (#"{"publish":["channel"],"channels":["*"],"where":["principal",["Exists"]]}"#, "/where", "principal.name"),
        (#"{"publish":["channel"],"channels":["*"],"where":{"and":[]}}"#, "/where", "without conditions"),
        (#"{"publish":["channel"],"channels":["*"],"where":{"not":{"or":[]}}}"#, "/where", "without conditions"),
        (#"{"publish":["channel"],"channels":["*"],"where":["object.a",["Is",1]]}"#, "/where/1/0", "operator"),
        (#"{"publish":["channel"],"channels":["*"],"where":["object.a",["Equals",1e999]]}"#, "/where/1/1", "too large"),
    ])
    func grantIsRefused(_ grant: String, _ pointer: String, _ reason: String) throws {
        try expectError(
            #"{"anonymous":["r"],"roles":{"r":[{"observe":["traffic"]},\#(grant)]}}"#,
            "/roles/r/1" + pointer,
            reason
        )
    }

    @Test(arguments: [
        ("{}", "", "must have tokens, certificates, anonymous or jwt"), ("[]", "", "must be an object"),
        (#"{"token":[]}"#, "/token", "unknown"), (#"{"tokens":[]}"#, "/tokens", "empty"),
        (#"{"anonymous":[]}"#, "/anonymous", "empty"), (#"{"anonymous":["r"]}"#, "/anonymous/0", "not a role"),
        (#"{"anonymous":["admin","admin"]}"#, "/anonymous/1", "twice"),
        (#"{"anonymous":["admin"],"roles":{"admin":[{"read":["info"]}]}}"#, "/roles/admin", "built in"),
        (#"{"anonymous":["admin"],"roles":{"r":[]}}"#, "/roles/r", "empty"),
        (#"{"anonymous":["admin"],"roles":{"":[{"read":["info"]}]}}"#, "/roles/", "name of 1 to"),
        (#"{"anonymous":["admin"],"roles":{"a#1":[{"read":["info"]}]}}"#, "/roles/a#1", "#"),
        (#"{"anonymous":["admin"],"roles":[]}"#, "/roles", "object"),
        (
            #"{"anonymous":["admin"],"roles":{"r":[{"read":["info"]}],"r":[{"read":["status"]}]}}"#, "/roles/r",
            "twice"
        ),
    ])
    func configurationIsRefused(_ json: String, _ pointer: String, _ reason: String) throws {
        try expectError(json, pointer, reason)
    }

    @Test(arguments: [
        (#""name":"""#, "/name", "name of 1 to"), (#""name":"a\nb""#, "/name", "control"),
        (#""name":"other""#, "/name", "another token"), (#""sha256":"00""#, "/sha256", "64 hexadecimal"),
        (#""sha256":["\#(String(repeating: "g", count: 64))"]"#, "/sha256/0", "64 hexadecimal"),
        (#""sha256":[]"#, "/sha256", "empty"), (#""sha256":"\#(digest)""#, "/sha256", "twice"),
        (#""roles":[]"#, "/roles", "empty"), (#""roles":["viewer"]"#, "/roles/0", "not a role"),
        (#""attributes":[]"#, "/attributes", "object"), (#""attributes":{"a":1e999}"#, "/attributes/a", "too large"),
        (#""attributes":{"a":"\#(String(repeating: "a", count: 4_096))"}"#, "/attributes", "4096"),
        (#""secret":"a""#, "/secret", "unknown"),
    ])
    func tokenIsRefused(_ member: String, _ pointer: String, _ reason: String) throws {
        let key = String(member.dropFirst().prefix { $0 != "\"" })
        let valid = [
            ("name", #""name":"t""#), ("sha256", #""sha256":"\#(String(repeating: "a", count: 64))""#),
            ("roles", #""roles":["admin"]"#),
        ]
        let members = valid.filter { $0.0 != key }.map(\.1) + [member]
        let other = #"{"name":"other","sha256":"\#(Self.digest)","roles":["admin"]}"#
        try expectError(
            #"{"tokens":[\#(other),{\#(members.joined(separator: ","))}]}"#,
            "/tokens/1" + pointer,
            reason
        )
    }

    @Test func boundsAreChecked() throws {
        func list(_ count: Int, _ element: (Int) -> String) -> String {
            "[" + (0..<count).map(element).joined(separator: ",") + "]"
        }
        func access(_ grants: String) -> String { #"{"anonymous":["r"],"roles":{"r":\#(grants)}}"# }
        func names(_ count: Int) -> String { #"[{"route":\#(list(count) { "\"n\($0)\"" })}]"# }
        #expect(try error(access(names(1_000))) == nil)
        try expectError(access(names(1_001)), "/roles/r/0/route", "more than 1000")
        let halves = list(501) { "\"n\($0)\"" }
        let two = #"[{"publish":["advertise","channel"],"types":\#(halves),"channels":\#(halves)}]"#
        try expectError(access(two), "/roles/r/0", "more than 1000 names")
        let grant = #"{"read":["info"]}"#
        #expect(try error(access(list(100) { _ in grant })) == nil)
        try expectError(access(list(101) { _ in grant }), "/roles/r", "more than 100 grants")
        let leaf = #"["object.x",["Exists"]]"#
        func condition(_ count: Int) -> String {
            access(#"[{"read":["agents"],"where":{"and":\#(list(count) { _ in leaf })}}]"#)
        }
        #expect(try error(condition(100)) == nil)
        try expectError(condition(101), "/roles/r/0/where", "more than 100 conditions")
        let roles = (0...100).map { "\"r\($0)\":[\(grant)]" }.joined(separator: ",")
        try expectError(#"{"anonymous":["admin"],"roles":{\#(roles)}}"#, "/roles", "more than 100 roles")
        func tokens(_ count: Int) -> String {
            let tokens = list(count) {
                let digits = String($0, radix: 16)
                let digest = String(repeating: "0", count: 64 - digits.count) + digits
                return #"{"name":"t\#($0)","sha256":"\#(digest)","roles":["admin"]}"#
            }
            return #"{"tokens":\#(tokens)}"#
        }
        #expect(try error(tokens(1_000)) == nil)
        try expectError(tokens(1_001), "/tokens", "more than 1000 tokens")
    }

    /// The patterns of the specification, one in each line: verb, pattern, dimension, root, o(thers) or r(etain).
    @Test func patternsHaveTheirNamesAndRoots() {
        let table = """
            publish advertise types object o
            publish deadvertise types object o
            publish channel channels object -
            publish raw topics - r
            publish iovalue contexts - o
            request discover types object -
            request query types object -
            request update types object o
            request call operations request -
            observe advertise types object -
            observe deadvertise types object -
            observe update types object -
            observe channel channels object -
            observe discover types request -
            observe query types request -
            observe call operations request -
            observe associate contexts - -
            observe routing contexts - -
            observe iovalue contexts - o
            observe iostate contexts - o
            observe raw topics - -
            observe traffic - - -
            answer discover types object -
            answer query types object -
            answer update types object -
            answer call operations request -
            read objects types object -
            read agents - object -
            read status - - -
            read info - - -
            read nodes contexts object o
            read contexts contexts - -
            register nodes contexts object o
            register identity - - -
            administer clients - - -
            administer gateway - - -
            """
        var lines: Set<String> = []
        for verb in Verb.allCases where verb != .route {
            for pattern in AccessPattern.allCases {
                guard let rule = verb.rule(of: pattern) else { continue }
                let flag = rule.hasOwners ? "o" : rule.isRetainable ? "r" : "-"
                let names = [
                    verb.rawValue, pattern.rawValue, rule.dimension?.rawValue ?? "-", rule.root?.rawValue ?? "-",
                ]
                lines.insert((names + [flag]).joined(separator: " "))
            }
        }
        #expect(lines == Set(table.split(separator: "\n").map(String.init)))
    }
}
