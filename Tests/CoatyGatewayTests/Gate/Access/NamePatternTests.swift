import Coaty
import TestSupport
import Testing

@testable import Access
@testable import Base

/// The names that an entry of a grant covers.
@Suite(.exclusive) struct NamePatternTests {
    private func set(_ entries: String...) throws -> NameSet { NameSet(try entries.map { try NamePattern($0) }) }

    @Test(arguments: [
        ("a", ["a"], ["A", "ab", "", "*"]), ("a*", ["a", "ab", "a*", "a/b"], ["A", "b", ""]),
        ("*", ["a", "*", #"\"#], []), (#"\*"#, ["*"], ["a", #"\*"#, "**"]), (#"a\*"#, ["a*"], ["ab", #"a\"#]),
        (#"a\*b"#, ["a*b"], ["acb"]), (#"a\**"#, ["a*", "a*b"], ["ab"]), (#"a\\*"#, [#"a\"#, #"a\b"#], ["a*", "ab"]),
        (#"\\"#, [#"\"#], [#"\\"#]), ("caf\u{e9}", ["caf\u{e9}"], ["cafe\u{301}"]), ("e*", ["e\u{301}"], ["\u{e9}"]),
    ])
    func entryCoversNames(_ entry: String, _ covered: [String], _ others: [String]) throws {
        let set = try set(entry)
        for name in covered { #expect(set.contains(WireName(name)), "\(name)") }
        for name in others { #expect(!set.contains(WireName(name)), "\(name)") }
        #expect(set.containsAll == (entry == "*"))
    }

    @Test(arguments: ["a*b", "**", "*a", #"a\"#, #"a\b"#, "*\u{301}"])
    func entryIsMalformed(_ entry: String) {
        #expect(throws: NamePattern.Malformed.self) { try NamePattern(entry) }
    }

    @Test(arguments: ["a", "*", #"\"#, #"a\*"#, "*a*", #"\\**"#, "\u{301}*"])
    func escapedNameCoversOnlyItself(_ name: String) throws {
        #expect(try NamePattern(NamePattern.escape(name)) == .name(WireName(name)))
    }

    /// Each case has a request, the entries of `types` that cover it, and entries that do not.
    @Test(arguments: [
        (AccessTarget.object(.Task, WireName("com.a")), "com.a com.* * Task", "com.b Tas* User coaty.Task"),
        (.object(.Task, WireName("coaty.Task")), "coaty.Task coaty.* * Task", "Tas*"),
        (.coreType(.Task), "* Task", "com.* coaty.Task T*"), (.objectType(WireName("com.a")), "com.a com.* *", "Task"),
        (.anyObject, "*", "com.* Task"),
    ])
    func typesCoverTargets(_ target: AccessTarget, _ covered: String, _ others: String) throws {
        for (entries, isAllowed) in [(covered, true), (others, false)] {
            for entry in entries.split(separator: " ") {
                let permissions = try Policy.permissions(#"[{"observe":["advertise"],"types":["\#(entry)"]}]"#)
                let request = AccessRequest(verb: .observe, pattern: .advertise, target: target)
                #expect(permissions.decide(request).isAllowed == isAllowed, "\(entry)")
            }
        }
    }

    @Test(arguments: [CoreType.Identity, .IoNode, .IoSource, .IoActor, .IoContext])
    func reservedCoreTypesMustBeSpelledOut(_ core: CoreType) throws {
        let strict = [(Verb.publish, AccessPattern.advertise), (.publish, .deadvertise), (.request, .update)]
        let loose = [
            (Verb.observe, AccessPattern.advertise), (.request, .discover), (.answer, .update), (.read, .objects),
        ]
        let targets = [AccessTarget.object(core, WireName("com.a")), .object(core, WireName(core.objectType))]
        for (verb, pattern) in strict + loose {
            let isStrict = strict.contains { $0 == (verb, pattern) }
            func allows(_ entry: String, _ target: AccessTarget) throws -> Bool {
                let grants = #"[{"\#(verb)":["\#(pattern)"],"types":["\#(entry)"]}]"#
                let request = AccessRequest(verb: verb, pattern: pattern, target: target)
                return try Policy.permissions(grants).decide(request).isAllowed
            }
            for target in targets {
                #expect(try allows(core.rawValue, target), "\(verb) \(pattern)")
                #expect(try allows("*", target) == !isStrict, "\(verb) \(pattern)")
            }
            #expect(try allows("com.a", targets[0]) == !isStrict)
            #expect(try allows("com.*", targets[0]) == !isStrict)
            #expect(try allows(core.objectType, targets[1]) == !isStrict)
            #expect(try allows("coaty.*", .objectType(WireName(core.objectType))) == !isStrict)
            #expect(try allows("*", .coreType(core)) == !isStrict)
            #expect(try allows(core.rawValue, .coreType(core)))
        }
    }

    @Test func publishingUnknownObjectsNeedsGrantWithoutCondition() throws {
        let request = AccessRequest(verb: .publish, pattern: .deadvertise, target: .anyObject)
        let free = #"{"publish":["deadvertise"],"types":["*"]}"#
        let conditional = #"{"publish":["deadvertise"],"types":["*"],"where":["principal.roles",["Exists"]]}"#
        #expect(try Policy.permissions("[\(free)]").decide(request).isAllowed)
        #expect(try !Policy.permissions("[\(conditional)]").decide(request).isAllowed)
        #expect(try Policy.permissions("[\(conditional)]").admit(request).text == "denied")
    }
}
