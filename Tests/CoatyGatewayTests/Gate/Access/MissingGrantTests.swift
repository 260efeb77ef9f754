import Coaty
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import CoatyGateway

/// The grant that a denial suggests: it allows the denied request, and nothing else.
@Suite(.exclusive) struct MissingGrantTests {
    private func missing(_ request: AccessRequest) -> String { Denial(request: request, failed: []).missing }

    /// Returns the permissions of a configuration with the suggested grant.
    private func permissions(_ missing: String) throws -> Permissions {
        let node = try #require(try YAMLNode.parse(missing))
        return try Policy.permissions(PayloadCoder.encode(YAMLValue(node).json))
    }

    @Test func missingGrantIsWrittenPlainly() throws {
        var request = AccessRequest(verb: .publish, pattern: .advertise)
        request.target = .object(.Task, WireName("com.example.Lamp"))
        #expect(missing(request) == "- publish: [\"advertise\"]\n  types: [\"com.example.Lamp\"]\n")
        request.isOfOthers = true
        #expect(missing(request).hasSuffix("\n  others: true\n"))
        let context = AccessTarget.context(WireName("Temperature"))
        let route = AccessRequest(verb: .route, pattern: .contexts, target: context)
        #expect(missing(route) == "- route: [\"Temperature\"]\n")
        let status = AccessRequest(verb: .read, pattern: .status)
        #expect(missing(status) == "- read: [\"status\"]\n")
        let raw = AccessRequest(verb: .publish, pattern: .raw, target: .topic("a/b"), isRetained: true)
        #expect(missing(raw) == "- publish: [\"raw\"]\n  topics: [\"a/b\"]\n  retain: true\n")
    }

    @Test(arguments: [
        ("*", #""\\*""#), ("com.*", #""com.\\*""#), (#"a\*"#, #""a\\\\\\*""#), (#"a", "*"#, #""a\", \"\\*""#),
        ("a\u{202E}b\n- x: 1", #""a\u202Eb\u000A- x: 1""#), ("\u{E0041}", #""\U000E0041""#), ("\u{FFFE}", #""\uFFFE""#),
        ("# : {}&!|>'%@`", ##""# : {}&!|>'%@`""##), ("caf\u{e9} \u{1F600}", "\"caf\u{e9} \u{1F600}\""),
    ])
    func namesOfClientsAreEscaped(_ name: String, _ text: String) throws {
        let target = AccessTarget.object(.CoatyObject, WireName(name))
        let request = AccessRequest(verb: .observe, pattern: .advertise, target: target)
        let missing = self.missing(request)
        #expect(missing == "- observe: [\"advertise\"]\n  types: [\(text)]\n")
        let permissions = try permissions(missing)
        #expect(permissions.grants.count == 1 && permissions.decide(request).isAllowed)
    }

    /// A type with the name of a core type must not grant that core type.
    @Test func typeNamedLikeCoreTypeDoesNotGrantCoreType() throws {
        var request = AccessRequest(verb: .publish, pattern: .advertise)
        request.target = .object(.CoatyObject, WireName("IoNode"))
        request.object = try JSONView(text: #"{"coreType":"CoatyObject","objectType":"IoNode"}"#)
        let permissions = try permissions(missing(request))
        #expect(permissions.decide(request).isAllowed)
        request.target = .object(.IoNode, WireName("coaty.IoNode"))
        request.object = try JSONView(text: #"{"coreType":"IoNode","objectType":"coaty.IoNode"}"#)
        #expect(!permissions.decide(request).isAllowed)
        #expect(missing(request) == "- publish: [\"advertise\"]\n  types: [\"IoNode\"]\n")
        #expect(try self.permissions(self.missing(request)).decide(request).isAllowed)
    }

    /// Names from malicious clients, with wildcards, escapes and YAML syntax.
    @Test func missingGrantAllowsItsRequestOnly() throws {
        var generator = AccessGenerator(seed: 17)
        let alphabet = [
            "a", "b", ".", "*", #"\"#, "\"", "'", " ", ":", "-", "{", "[", ",", "&", "!", "~", "\u{e9}", "\u{202E}",
        ]
        func name() -> String {
            (0...Int.random(in: 0...3, using: &generator.random)).map { _ in generator.pick(alphabet) }.joined()
        }
        func request(like other: AccessRequest? = nil) -> AccessRequest {
            let verb = other?.verb ?? generator.pick(Verb.allCases)
            let pattern = other?.pattern ?? (verb == .route ? .contexts : generator.pick(verb.patterns))
            let rule = verb.rule(of: pattern) ?? GrantRule()
            var request = AccessRequest(verb: verb, pattern: pattern)
            let core = generator.pick(CoreType.allCases)
            switch rule.dimension {
            case nil: break
            case .types:
                let object = AccessTarget.object(core, WireName(name()))
                request.target = generator.pick([
                    object, object, .coreType(core), .objectType(WireName(name())), .anyObject,
                ])
            case .channels: request.target = .channel(WireName(name()))
            case .operations: request.target = generator.pick([.operation(WireName(name())), .anyOperation])
            case .contexts: request.target = generator.pick([.context(WireName(name())), .anyContext])
            case .topics:
                let levels = (0...2).map { _ in generator.chance(0.2) ? "+" : name() }
                let filter = levels.joined(separator: "/") + (generator.chance(0.2) ? "/#" : "")
                request.target =
                    generator.chance(0.5) ? .topicFilter(filter) : .topic(filter.filter { $0 != "+" && $0 != "#" })
            }
            request.isOfOthers = rule.hasOwners && generator.chance(0.3)
            request.isRetained = rule.isRetainable && generator.chance(0.3)
            return request
        }
        var others = 0
        for _ in 0..<3_000 {
            let asked = request()
            let permissions = try permissions(missing(asked))
            #expect(permissions.decide(asked).isAllowed, "\(asked)")
            for _ in 0..<10 {
                let other = request(like: generator.chance(0.7) ? asked : nil)
                let isAllowed = permissions.decide(other).isAllowed
                if !Self.isPart(other, of: asked) {
                    others += 1
                    #expect(!isAllowed, "\(other) of \(asked)")
                }
            }
        }
        #expect(others > 15_000)
    }

    /// Returns whether a grant for one request also covers the other one, or may cover it.
    private static func isPart(_ other: AccessRequest, of request: AccessRequest) -> Bool {
        guard other.verb == request.verb, other.pattern == request.pattern else { return false }
        if other.isOfOthers && !request.isOfOthers || other.isRetained && !request.isRetained { return false }
        return switch (request.target, other.target) {
        case (.anyObject, _), (.anyContext, _), (.anyOperation, _): true
        case (.coreType(let core), .object(let other, _)): core == other
        case (.object(_, let type), .object(_, let other)), (.objectType(let type), .object(_, let other)),
            (.object(_, let type), .objectType(let other)):
            // Grants for an object type do not cover reserved core types.
            type == other || Self.isReserved(request)
        case (.object(let core, _), .coreType(let other)): core == other
        // Overlapping topic filters are covered by ``TopicPatternTests``.
        case (.topic(let topic), .topic(let other)): topic.utf8.elementsEqual(other.utf8)
        case (.topicFilter, .topicFilter), (.topicFilter, .topic): true
        default: request.target == other.target
        }
    }

    private static func isReserved(_ request: AccessRequest) -> Bool {
        guard case .object(let core, _) = request.target else { return false }
        return core.isReserved && request.protectsReservedTypes
    }
}
