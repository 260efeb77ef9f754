import Coaty
import CoatyMQTT
import TestSupport
import Testing

@testable import Access
@testable import Base

/// Tokens, subjects, and permissions that a reload keeps.
@Suite(.exclusive) struct PolicyTests {
    private let digests = ["a", "b", "c"].map { String(repeating: $0, count: 64) }

    private func bytes(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: 32) }

    private func policy(_ json: String, dialect: TopicDialect = .plain, replacing old: Policy? = nil) throws -> Policy {
        Policy(try AccessConfiguration(json: json), dialect: dialect, replacing: old)
    }

    private func access(site: String = "hall-1", viewer: String = "com.a", operator other: String = "com.b") -> String {
        #"""
        {"roles":{"viewer":[{"observe":["advertise"],"types":["\#(viewer)"],
                             "where":["object.site",["Equals",{"property":"principal.site"}]]}],
                  "operator":[{"publish":["advertise"],"types":["\#(other)"]}],
                  "own":[{"observe":["advertise"],"types":["*"],"where":["object.owner",["Equals",{"property":"principal.name"}]]}]},
         "anonymous":["operator"],
         "tokens":[{"name":"one","sha256":["\#(digests[0])","\#(digests[1])"],"roles":["viewer"],"attributes":{"site":"\#(site)"}},
                   {"name":"two","sha256":"\#(digests[2].uppercased())","roles":["viewer"],"attributes":{"site":"hall-1"}},
                   {"name":"three","sha256":"\#(String(repeating: "d", count: 64))","roles":["own"]},
                   {"name":"four","sha256":"\#(String(repeating: "e", count: 64))","roles":["own"]},
                   {"name":"root","sha256":"\#(String(repeating: "f", count: 64))","roles":["admin","viewer"]}]}
        """#
    }

    /// Looks up a token by the bytes of a digest, which may have any length.
    private func token(of policy: Policy, _ bytes: [UInt8]) -> AccessConfiguration.Token? {
        TokenDigest(bytes: bytes).flatMap(policy.token)
    }

    @Test func openPolicyAllowsEverything() {
        let request = AccessRequest(verb: .administer, pattern: .clients)
        #expect(Policy.open.isOpen && token(of: Policy.open, bytes(0)) == nil)
        for subject in [Principal.Subject.anonymous, .token("any")] {
            let permissions = Policy.open.permissions(of: subject)
            #expect(permissions === Permissions.unrestricted && permissions?.decide(request).isAllowed == true)
            #expect(permissions?.hasGrant(.route, .contexts) == true)
        }
    }

    @Test func tokenIsFoundByEachOfItsDigests() throws {
        let policy = try policy(access())
        #expect(!policy.isOpen)
        #expect(token(of: policy, bytes(0xAA))?.name == "one" && token(of: policy, bytes(0xBB))?.name == "one")
        #expect(token(of: policy, bytes(0xCC))?.name == "two")
        for index in [0, 7, 8, 31] {
            var wrong = bytes(0xAA)
            wrong[index] ^= 1
            #expect(token(of: policy, wrong) == nil)
        }
        #expect(token(of: policy, []) == nil && token(of: policy, bytes(0xAA) + [0]) == nil)
    }

    @Test func subjectsHaveTheirPermissions() throws {
        let policy = try policy(access())
        #expect(policy.permissions(of: .anonymous)?.roles == ["operator"])
        #expect(policy.permissions(of: .token("none")) == nil)
        let root = try #require(policy.permissions(of: .token("root")))
        #expect(root.isUnrestricted && root.decide(AccessRequest(verb: .route, pattern: .contexts)).isAllowed)
        let noAnonymous = try self.policy(
            #"{"tokens":[{"name":"t","sha256":"\#(digests[0])","roles":["admin"]}]}"#
        )
        #expect(noAnonymous.permissions(of: .anonymous) == nil)
    }

    /// Two tokens share permissions unless a condition tests the name.
    @Test func equalPermissionsAreOneObject() throws {
        let policy = try policy(access())
        #expect(policy.permissions(of: .token("one")) === policy.permissions(of: .token("two")))
        #expect(policy.permissions(of: .token("three")) !== policy.permissions(of: .token("four")))
    }

    @Test func reloadKeepsWhatDoesNotChange() throws {
        let old = try policy(access())
        let names = ["one", "two", "three", "four", "root"]
        func changed(_ new: Policy) -> [String] {
            names.filter { new.permissions(of: .token($0)) !== old.permissions(of: .token($0)) }
        }
        #expect(changed(try policy(access(), replacing: old)) == [])
        #expect(changed(try policy(access(), replacing: policy(access(), replacing: old))) == [])
        #expect(changed(try policy(access(site: "hall-2"), replacing: old)) == ["one"])
        let other = try policy(access(operator: "com.c"), replacing: old)
        #expect(changed(other) == [] && other.permissions(of: .anonymous) !== old.permissions(of: .anonymous))
        #expect(changed(try policy(access(viewer: "com.c"), replacing: old)) == ["one", "two", "root"])
        // These texts are equal to Swift, but not byte by byte.
        let composed = try policy(access(site: "caf\u{e9}"))
        let decomposed = try policy(access(site: "cafe\u{301}"), replacing: composed)
        #expect(decomposed.permissions(of: .token("one")) !== composed.permissions(of: .token("one")))
        #expect(changed(try policy(access(), dialect: .slashes, replacing: old)) == names)
    }

    @Test(arguments: [
        (["object.site", "principal.site"], true), (["object.site", "principal.attributes.site"], true),
        (["object.n", "principal.name"], true), (["object.roles", "principal.roles"], true),
        (["object.own", "principal.attributes.name"], true), (["object.none", "principal.site"], false),
        (["object.site", "principal.none"], false), (["object.own", "principal.name"], false),
    ])
    func conditionTestsPrincipal(_ paths: [String], _ isAllowed: Bool) throws {
        let grants = #"""
            [{"observe":["advertise"],"types":["*"],"where":["\#(paths[0])",["Equals",{"property":"\#(paths[1])"}]]}]
            """#
        let permissions = try Policy.permissions(grants, attributes: #"{"site":"hall-1","name":"own","roles":["x"]}"#)
        var request = AccessRequest(verb: .observe, pattern: .advertise, target: .anyObject)
        #expect(!permissions.decide(request).isAllowed)
        request.object = try JSONView(text: #"{"site":"hall-1","n":"t","own":"own","roles":["r"]}"#)
        #expect(permissions.decide(request).isAllowed == isAllowed)
        #expect(permissions.admit(request).text == "conditional")
    }

    @Test func nameOfAnonymousClientsIsUnknown() throws {
        for test in [#"["Exists"]"#, #"["NotExists"]"#, #"["NotEquals","x"]"#] {
            let grants = #"[{"observe":["advertise"],"types":["*"],"where":["principal.name",\#(test)]}]"#
            let request = AccessRequest(verb: .observe, pattern: .advertise, target: .anyObject)
            #expect(try !Policy.permissions(grants, anonymous: true).decide(request).isAllowed)
        }
    }

    /// The names of one grant and the condition of another cannot be combined.
    @Test func oneGrantMustCoverAll() throws {
        let grants = #"""
            [{"observe":["advertise"],"types":["com.a"],"where":["object.site",["Equals","hall-1"]]},
             {"observe":["advertise"],"types":["com.b"]},{"publish":["raw"],"topics":["a"]},
             {"publish":["raw"],"topics":["b"],"retain":true}]
            """#
        let permissions = try Policy.permissions(grants)
        func decide(_ type: String, _ site: String) throws -> AccessDecision {
            let object = try JSONView(text: #"{"site":"\#(site)"}"#)
            let target = AccessTarget.object(.CoatyObject, WireName(type))
            return permissions.decide(
                AccessRequest(verb: .observe, pattern: .advertise, target: target, object: object)
            )
        }
        #expect(try decide("com.a", "hall-1").isAllowed && decide("com.b", "hall-2").isAllowed)
        let denied = try decide("com.a", "hall-2")
        #expect(denied.denial?.failed == ["r#1"])
        func retain(_ topic: String) -> Bool {
            let request = AccessRequest(verb: .publish, pattern: .raw, target: .topic(topic), isRetained: true)
            return permissions.decide(request).isAllowed
        }
        #expect(!retain("a") && retain("b"))
    }

    /// A grant that exceeds its budget does not affect the next grant.
    @Test func eachGrantHasItsOwnBudget() throws {
        let costly = #"{"observe":["advertise"],"types":["*"],"where":["object.text",["Like","%a%a%a%"]]}"#
        let cheap = #"{"observe":["advertise"],"types":["*"],"where":["object.site",["Exists"]]}"#
        let text = String(repeating: "b", count: 1 << 18)
        var request = AccessRequest(verb: .observe, pattern: .advertise, target: .anyObject)
        request.object = try JSONView(text: #"{"site":1,"text":"\#(text)"}"#)
        let opposite = costly.replacing(
            #"["object.text",["Like","%a%a%a%"]]"#,
            with: #"{"not":["object.text",["Like","%a%a%a%"]]}"#
        )
        #expect(try !Policy.permissions("[\(costly)]").decide(request).isAllowed)
        #expect(try !Policy.permissions("[\(opposite)]").decide(request).isAllowed)
        #expect(try Policy.permissions("[\(costly),\(cheap)]").decide(request).isAllowed)
    }
}
