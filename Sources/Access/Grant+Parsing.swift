import Base
import Coaty
import CoatyMQTT

extension Grant {
    /// Maximum number of names in all dimensions.
    static let maximumNames = 1_000
    /// Maximum number of property conditions in a `where`.
    static let maximumConditions = 100

    private static let options: Set<String> = ["where", "others", "retain"]

    /// Reads an element of a role's list of grants.
    ///
    /// - Throws: `PayloadError` with a pointer to an entry that is unknown, missing, or has no effect.
    init(_ view: JSONView, role: String, number: Int) throws(PayloadError) {
        let verb = try Self.verb(view)
        guard let list = view.member(named: verb.rawValue) else { throw view.invalid("must be an object") }
        var names: [GrantDimension: [NamePattern]] = [:]
        var rules: [GrantRule] = []
        var patterns: [AccessPattern] = []
        if verb == .route {
            rules = [verb.rule(of: .contexts) ?? GrantRule()]
            names[.contexts] = try Self.names(list, isOnTopic: true)
        } else {
            for (element, text) in try list.nonEmptyStrings() {
                guard let pattern = AccessPattern(rawValue: text), let rule = verb.rule(of: pattern) else {
                    let known = verb.patterns.map(\.rawValue).joined(separator: ", ")
                    throw element.invalid("must be one of \(known)")
                }
                guard !patterns.contains(pattern) else { throw element.invalid("is there twice") }
                patterns.append(pattern)
                rules.append(rule)
            }
        }
        let dimensions = verb == .route ? [] : GrantDimension.allCases.filter { rules.map(\.dimension).contains($0) }
        try Self.checkMembers(view, verb, dimensions)
        var topics: [String] = []
        for dimension in dimensions {
            guard let list = view.member(named: dimension.rawValue) else {
                let all = dimension == .topics ? "#" : "*"
                let reason = "missing; write [\"\(all)\"] for all \(dimension.rawValue)"
                throw .invalid(pointer: "\(view.pointer)/\(dimension.rawValue)", reason: reason)
            }
            if dimension == .topics {
                topics = try Self.topics(list)
            } else {
                let isOnTopic = rules.allSatisfy { $0.dimension != dimension || $0.isOnTopic }
                names[dimension] = try Self.names(list, isOnTopic: isOnTopic)
            }
        }
        guard names.values.reduce(topics.count, { $0 + $1.count }) <= Self.maximumNames else {
            throw view.invalid("has more than \(Self.maximumNames) names")
        }
        var usesPrincipalName = false
        condition = try view["where"].map { view throws(PayloadError) in
            try Self.condition(view, rules) { usesPrincipalName = usesPrincipalName || $0 }
        }
        includesOthers = try Self.flag(view["others"], isMeaningful: rules.contains(where: \.hasOwners))
        includesRetained = try Self.flag(view["retain"], isMeaningful: rules.contains(where: \.isRetainable))
        self.role = role
        self.number = number
        self.verb = verb
        self.patterns = patterns
        types = names[.types].map(NameSet.init)
        channels = names[.channels].map(NameSet.init)
        operations = names[.operations].map(NameSet.init)
        contexts = names[.contexts].map(NameSet.init)
        self.topics = topics
        self.usesPrincipalName = usesPrincipalName
        source = Array(view.bytes)
    }

    private static func verb(_ view: JSONView) throws(PayloadError) -> Verb {
        guard view.kind == .object else { throw view.invalid("must be an object") }
        let verbs = view.members.compactMap { key, _ in key.string.flatMap(Verb.init(rawValue:)) }
        guard verbs.count == 1, let verb = verbs.first else {
            let all = Verb.allCases.map(\.rawValue).joined(separator: ", ")
            throw view.invalid("must have one of \(all)")
        }
        return verb
    }

    private static func checkMembers(
        _ view: JSONView,
        _ verb: Verb,
        _ dimensions: [GrantDimension]
    ) throws(PayloadError) {
        try view.refuseDuplicates()
        for (key, value) in view.members {
            let key = key.string ?? ""
            if key == verb.rawValue || options.contains(key) { continue }
            guard let dimension = GrantDimension(rawValue: key) else {
                let known = [verb.rawValue] + dimensions.map(\.rawValue) + options.sorted()
                throw value.invalid(NearestName.refusal(of: key, known: known))
            }
            guard dimensions.contains(dimension) else {
                throw value.invalid("has no meaning here; no pattern of the grant has \(key)")
            }
        }
    }

    private static func names(_ list: JSONView, isOnTopic: Bool) throws(PayloadError) -> [NamePattern] {
        var patterns: [NamePattern] = []
        for (element, text) in try list.nonEmptyStrings() {
            do throws(NamePattern.Malformed) {
                patterns.append(try NamePattern(text))
            } catch {
                throw element.invalid(error.reason)
            }
            guard let name = patterns.last?.name.text, isOnTopic, !name.isEmpty else { continue }
            guard WireName.isValid(name) else { throw element.invalid("has #, +, / or NUL, which no such name has") }
        }
        return patterns
    }

    private static func topics(_ list: JSONView) throws(PayloadError) -> [String] {
        var topics: [String] = []
        for (element, text) in try list.nonEmptyStrings() {
            do throws(NamePattern.Malformed) {
                let (topic, asterisk) = try NamePattern.unescape(text)
                guard asterisk == nil else {
                    throw NamePattern.Malformed(
                        reason: "may have the wildcards + and # only; write \\* for an asterisk"
                    )
                }
                guard MQTTTopicRules.isObservable(topic) else {
                    throw NamePattern.Malformed(reason: "is not a topic or topic filter for raw events")
                }
                topics.append(topic)
            } catch {
                throw element.invalid(error.reason)
            }
        }
        return topics
    }

    private static func flag(_ view: JSONView?, isMeaningful: Bool) throws(PayloadError) -> Bool {
        guard let view else { return false }
        guard view.bool == true else { throw view.invalid("must be true, or left out") }
        guard isMeaningful else { throw view.invalid("has no meaning here; no pattern of the grant has it") }
        return true
    }

    private static func condition(
        _ view: JSONView,
        _ rules: [GrantRule],
        _ usesName: (Bool) -> Void
    ) throws(PayloadError) -> CompiledCondition {
        var roots = [GrantRoot.principal.rawValue]
        for root in [GrantRoot.request, .object] where rules.allSatisfy({ $0.root == root }) {
            roots.insert(root.rawValue, at: 0)
        }
        guard rules.allSatisfy({ $0.root != nil }) else {
            throw view.invalid("cannot be judged; a pattern of the grant has nothing to test")
        }
        try view.checkValues()
        let condition = try ObjectFilterCondition(view)
        guard condition.leafCount <= maximumConditions else {
            throw view.invalid("has more than \(maximumConditions) conditions")
        }
        guard !condition.hasEmptyList else { throw view.invalid("has an and or or without conditions") }
        var isPrincipalOnly = false
        try condition.checkRoots(roots, at: view.pointer) { property in
            guard property.names.first == GrantRoot.principal.rawValue else { return }
            isPrincipalOnly = isPrincipalOnly || property.names.count == 1
            usesName(property.names.dropFirst().first == "name")
        }
        guard !isPrincipalOnly else { throw view.invalid("must name a property of the principal, as principal.name") }
        return CompiledCondition(condition)
    }
}

extension ObjectFilterCondition {
    /// Whether there is an `and` or `or` without conditions, which is always true or always false.
    fileprivate var hasEmptyList: Bool {
        switch self {
        case .property: false
        case .and(let list), .or(let list): list.isEmpty || list.contains(where: \.hasEmptyList)
        case .not(let condition): condition.hasEmptyList
        }
    }
}
