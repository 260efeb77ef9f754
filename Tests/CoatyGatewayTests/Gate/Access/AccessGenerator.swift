import Coaty
import TestSupport

@testable import Access
@testable import Base
@testable import Gate

/// A request, with its parts as plain texts for the reference.
struct AccessCase {
    var request: AccessRequest
    /// The list of a grant that must cover the name.
    let key: String?
    let name: String?
    let core: String?
    let roots: [String: AnyCodable]
}

/// Random grants, and random requests that are likely to be covered.
struct AccessGenerator {
    static let types = [
        "com.example.Lamp", "com.example.Door", "com.other.Gate", "coaty.IoNode", "coaty.Task", "Task", "a*", #"b\c"#,
    ]
    static let coreTypes: [CoreType] = [.CoatyObject, .Task, .Identity, .IoNode, .IoContext]
    static let names = ["hall", "hall.1", "hall.2", "yard", "a*", #"b\c"#, "*"]
    private static let objectPaths = ["site", "n", "tags", "deep.x", "none"]
    private static let principalPaths = [
        "principal.site", "principal.attributes.site", "principal.level", "principal.roles", "principal.name",
        "principal.none",
    ]

    var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &random) < probability }

    // MARK: - Grants

    mutating func grant() -> AnyCodable {
        let verb = pick(Verb.allCases)
        if verb == .route {
            return ["route": names(.contexts)]
        }
        var patterns = [pick(verb.patterns)]
        if let other = [pick(verb.patterns)].first(where: { $0 != patterns[0] }), chance(0.5) { patterns.append(other) }
        let rules = patterns.compactMap { verb.rule(of: $0) }
        var members: [String: AnyCodable] = [verb.rawValue: .array(patterns.map { .string($0.rawValue) })]
        for rule in rules {
            guard let dimension = rule.dimension else { continue }
            members[dimension.rawValue] = names(dimension)
        }
        if let root = rules.first?.root, rules.allSatisfy({ $0.root == root }), chance(0.9) {
            members["where"] = condition(root: root.rawValue)
        }
        if rules.contains(where: \.hasOwners), chance(0.5) { members["others"] = true }
        if rules.contains(where: \.isRetainable), chance(0.5) { members["retain"] = true }
        return .object(members)
    }

    private mutating func names(_ dimension: GrantDimension) -> AnyCodable {
        .array((0...Int.random(in: 0...2, using: &random)).map { _ in .string(entry(dimension)) })
    }

    private mutating func entry(_ dimension: GrantDimension) -> String {
        if dimension == .topics { return NamePattern.escape(topic(hasWildcards: chance(0.7))) }
        if chance(0.2) { return "*" }
        guard dimension == .types else {
            return chance(0.4)
                ? pick(["hall*", "hall.*", "ya*", #"a\**"#, #"b\\*"#]) : NamePattern.escape(pick(Self.names))
        }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return pick(["com.*", "com.example.*", "coaty.*", #"a\**"#, "T*"])
        case 1: return pick(Self.coreTypes).rawValue
        default: return NamePattern.escape(pick(Self.types))
        }
    }

    mutating func topic(hasWildcards: Bool) -> String {
        let wild = hasWildcards ? ["+", "+"] : []
        var levels = [pick(["a", "a", "b", "$s"] + wild)]
        for _ in 0..<Int.random(in: 0...2, using: &random) { levels.append(pick(["a", "b", "", "c*"] + wild)) }
        if hasWildcards, chance(0.4) {
            if chance(0.2) { levels.removeAll() }
            levels.append("#")
        }
        return levels.joined(separator: "/")
    }

    // MARK: - Conditions

    mutating func condition(root: String, depth: Int = 0) -> AnyCodable {
        guard depth < 3, chance(0.35) else { return leaf(root) }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return ["not": condition(root: root, depth: depth + 1)]
        case 1: return ["and": [condition(root: root, depth: depth + 1), condition(root: root, depth: depth + 1)]]
        default: return ["or": [condition(root: root, depth: depth + 1), condition(root: root, depth: depth + 1)]]
        }
    }

    private mutating func leaf(_ root: String) -> AnyCodable {
        let paths = Self.objectPaths.map { "\(root).\($0)" }
        let path = AnyCodable.string(pick(paths + paths + Self.principalPaths))
        let scalar: AnyCodable = pick(["hall-1", "hall-1", "hall-2", 1, "r"])
        let sites = [
            "principal.site", "principal.site", "principal.attributes.site", "\(root).site", "principal.name",
            "\(root).none",
        ]
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return [path, [.string(pick(["Exists", "NotExists"]))]]
        case 1:
            let operands: [AnyCodable] = [
                ["hall-1", "hall-2"], [1, 2, "r"], ["property": "principal.roles"],
                ["property": .string("\(root).tags")],
                ["property": "principal.site"], "hall-1",
            ]
            return [path, [.string(pick(["In", "NotIn"])), pick(operands)]]
        case 2:
            let operand: AnyCodable = chance(0.5) ? ["property": .string(pick(sites))] : scalar
            return [path, [.string(pick(["Contains", "NotContains"])), operand]]
        case 3:
            let left = AnyCodable.string(pick(["\(root).n", "\(root).deep.x", "\(root).none", "principal.level"]))
            return [left, ["LessThan", chance(0.5) ? ["property": "principal.level"] : 2]]
        default:
            let operand: AnyCodable = chance(0.6) ? ["property": .string(pick(sites))] : scalar
            let name = AnyCodable.string(pick(["Equals", "Equals", "NotEquals"]))
            return [chance(0.7) ? .string("\(root).site") : path, [name, operand]]
        }
    }

    // MARK: - Principals and requests

    /// Returns attributes of a token; most attributes are likely to be present.
    mutating func attributes() -> AnyCodable {
        var members: [String: AnyCodable] = [:]
        if chance(0.8) { members["site"] = pick(["hall-1", "hall-1", "hall-1", "hall-2"]) }
        if chance(0.7) { members["level"] = .integer(Int64.random(in: 0...3, using: &random)) }
        if chance(0.1) { members["name"] = "hall-1" }
        return .object(members)
    }

    mutating func object() -> AnyCodable {
        var members: [String: AnyCodable] = [:]
        if chance(0.85) { members["site"] = pick(["hall-1", "hall-1", "hall-1", "hall-1", "hall-2", 1, nil]) }
        if chance(0.8) { members["n"] = pick([0, 1, 2, 3, "x"]) }
        if chance(0.7) { members["tags"] = pick([[], ["hall-1", "r"], [1, 2, "t"], "r"]) }
        if chance(0.6) { members["deep"] = pick([["x": 1], ["x": 5], [:], "r"]) }
        return .object(members)
    }

    mutating func request(for grants: [AnyCodable], _ principal: AnyCodable) throws -> AccessCase {
        var (verb, pattern) = (pick(Verb.allCases), AccessPattern.contexts)
        let grant = pick(grants)
        if chance(0.9), let known = Verb.allCases.first(where: { grant[$0.rawValue] != nil }) {
            verb = known
            pattern = grant[known.rawValue]?.texts.lazy.compactMap(AccessPattern.init(rawValue:)).first ?? .contexts
        } else {
            pattern = pick(verb.patterns)
        }
        let rule = verb.rule(of: pattern) ?? GrantRule()
        let isStrict = AccessRequest(verb: verb, pattern: pattern).protectsReservedTypes
        let (target, name, core) = target(rule.dimension, isStrict)
        var request = AccessRequest(verb: verb, pattern: pattern, target: target)
        request.isOfOthers = chance(rule.hasOwners ? 0.3 : 0.02)
        request.isRetained = chance(rule.isRetainable ? 0.3 : 0.02)
        var roots = ["principal": principal]
        if let root = rule.root, chance(0.95) {
            let value = object()
            roots[root.rawValue] = value
            let view = try JSONView(text: PayloadCoder.encode(value))
            if root == .object { request.object = view } else { request.request = view }
        }
        return AccessCase(request: request, key: rule.dimension?.rawValue, name: name, core: core, roots: roots)
    }

    private mutating func target(_ dimension: GrantDimension?, _ isStrict: Bool) -> (AccessTarget, String?, String?) {
        let (name, isAny) = (pick(Self.names), chance(0.1))
        switch dimension {
        case nil: return (.none, nil, nil)
        case .channels: return (.channel(WireName(name)), name, nil)
        case .operations: return isAny ? (.anyOperation, nil, nil) : (.operation(WireName(name)), name, nil)
        case .contexts: return isAny ? (.anyContext, nil, nil) : (.context(WireName(name)), name, nil)
        case .topics:
            let isFilter = chance(0.5)
            let topic = topic(hasWildcards: isFilter)
            return (isFilter ? .topicFilter(topic) : .topic(topic), topic, nil)
        case .types:
            let (core, type) = (pick(Self.coreTypes), pick(Self.types))
            switch Int.random(in: 0..<10, using: &random) {
            case 0: return (.anyObject, nil, nil)
            case 1, 2: return (.coreType(core), nil, core.rawValue)
            // If core types are reserved, the object type of a core type stands for it.
            case 3, 4: return (.objectType(WireName(type)), type, isStrict && type == "coaty.IoNode" ? "IoNode" : nil)
            default: return (.object(core, WireName(type)), type, core.rawValue)
            }
        }
    }
}
