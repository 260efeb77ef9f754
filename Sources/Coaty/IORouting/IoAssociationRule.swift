/// Returns whether to associate a source and an actor.
///
/// It runs on the ``ControllerActor``, in small batches of pairs with other work between them.
public typealias IoRoutingRuleConditionFunc =
    @ControllerActor (
        _ source: IoSource,
        _ sourceNode: IoNode,
        _ actor: IoActor,
        _ actorNode: IoNode,
        _ context: IoContext,
        _ router: RuleBasedIoRouter
    ) -> Bool

/// A rule that associates sources and actors.
///
/// Its condition is a closure, or a filter condition over the pair, its nodes and the context. A rule with a filter
/// condition has a JSON form, `{name, valueType?, condition}`:
///
/// ```json
/// {"name": "Responsible actors", "valueType": "coaty.test.Temperature[Celsius]",
///  "condition": ["actorNode.characteristics.state", ["Equals", {"property": "context.operatingState"}]]}
/// ```
public struct IoAssociationRule: Sendable {
    /// The condition that decides on a pair.
    public enum Condition: Sendable {
        /// A closure.
        case function(IoRoutingRuleConditionFunc)
        /// A filter condition whose properties begin with the name of a ``Root``.
        case filter(ObjectFilterCondition)
    }

    /// The objects that a filter condition can refer to.
    public enum Root: String, Sendable, CaseIterable {
        case source, sourceNode, actor, actorNode, context
    }

    /// Maximum number of rules in a JSON array; a longer array is refused.
    public static let maximumCount = 1_000
    /// Maximum number of conditions in all rules of a JSON array, without `and` and `or`; an array with more is
    /// refused.
    public static let maximumConditionCount = 10_000

    /// The purpose of the rule, for people.
    public let name: String
    /// The value type that the rule is for; nil for value types that have no specific rule.
    public let valueType: String?
    /// Whether a pair is associated.
    public let condition: Condition
    /// The context properties that the condition uses, each once; the root property if it uses the whole context. nil
    /// if they are unknown, as for a closure.
    public let contextProperties: [ObjectFilterProperty]?
    /// The condition, unless it is a closure.
    let filter: CompiledCondition?

    /// Creates a rule.
    public init(name: String, valueType: String? = nil, condition: @escaping IoRoutingRuleConditionFunc) {
        self.name = name
        self.valueType = valueType
        self.condition = .function(condition)
        contextProperties = nil
        filter = nil
    }

    /// Creates a rule that has a JSON form.
    ///
    /// - Throws: ``PayloadError`` if a property, or an operand that is one, does not begin with a ``Root``, or the
    ///   condition is nested too deeply. The pointer is that of the rule's JSON.
    public init(
        name: String,
        valueType: String? = nil,
        condition: ObjectFilterCondition
    ) throws(PayloadError) {
        var properties: [ObjectFilterProperty] = []
        try condition.checkRoots(Root.allCases.map(\.rawValue), at: "/condition") { properties.append($0) }
        var seen: Set<ObjectFilterProperty> = []
        self.name = name
        self.valueType = valueType
        self.condition = .filter(condition)
        filter = CompiledCondition(condition)
        contextProperties = properties.filter { $0.names.first == Root.context.rawValue && seen.insert($0).inserted }
    }

    /// Whether a changed context can change the rule's decisions.
    public var usesContext: Bool { contextProperties?.isEmpty != true }

    /// Returns whether a changed context can change the rule's decisions. Values with different JSON texts count as
    /// different.
    public func isTouched(from old: JSONView, to new: JSONView) -> Bool {
        guard let contextProperties else { return true }
        return contextProperties.contains { property in
            let path = property.names.dropFirst()
            return switch (old.value(at: path), new.value(at: path)) {
            case (nil, nil): false
            case (let old?, let new?): old.bytes != new.bytes
            default: true
            }
        }
    }
}

extension IoAssociationRule {
    /// Decodes the JSON array of rules `{name, valueType?, condition}`. An empty value type counts as absent.
    ///
    /// - Throws: ``PayloadError`` with the place of the error: an unknown key, root or operator, a missing name or
    ///   condition, a number outside the range of doubles, more than ``maximumCount`` rules, or more than
    ///   ``maximumConditionCount`` conditions.
    public static func rules(_ view: JSONView) throws(PayloadError) -> [IoAssociationRule] {
        guard view.kind == .array else { throw .invalid(view, "must be an array") }
        var rules: [IoAssociationRule] = []
        var conditionCount = 0
        for element in view.elements {
            guard rules.count < maximumCount else { throw .invalid(view, "has more than \(maximumCount) rules") }
            let rule = try IoAssociationRule(element)
            if case .filter(let condition) = rule.condition { conditionCount += condition.count }
            guard conditionCount <= maximumConditionCount else {
                throw .invalid(
                    element["condition"] ?? element,
                    "the rules have more than \(maximumConditionCount) conditions"
                )
            }
            rules.append(rule)
        }
        return rules
    }

    private enum Keys: String, CodingKey, CaseIterable {
        case name, valueType, condition
    }

    private init(_ view: JSONView) throws(PayloadError) {
        guard view.kind == .object else { throw .invalid(view, "must be an object") }
        for (key, value) in view.members where key.string.flatMap(Keys.init(rawValue:)) == nil {
            throw .invalid(value, "unknown key")
        }
        try PropertyRule.required("name", .nonEmptyString).check(view)
        try PropertyRule.optional("valueType", .string).check(view)
        guard let tree = view["condition"] else { throw .missing("condition", in: view) }
        try tree.checkNumbers()
        let condition = try ObjectFilterCondition(tree)
        let valueType = view["valueType"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        do throws(PayloadError) {
            try self.init(name: view["name"]?.string ?? "", valueType: valueType, condition: condition)
        } catch {
            guard case .invalid(let pointer, let reason) = error else { throw error }
            throw .invalid(pointer: view.pointer + pointer, reason: reason)
        }
    }
}

extension IoAssociationRule: Encodable {
    /// Encodes the rule, with operator names.
    ///
    /// - Throws: `EncodingError.invalidValue` if the condition is a closure.
    public func encode(to encoder: any Encoder) throws {
        guard case .filter(let filter) = condition else {
            throw EncodingError.invalidValue(
                self,
                .init(codingPath: encoder.codingPath, debugDescription: "a closure has no JSON form")
            )
        }
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(name, forKey: .name)
        try container.encodeIfPresent(valueType, forKey: .valueType)
        try container.encode(filter.json(.tree, operators: .names), forKey: .condition)
    }
}

extension JSONView {
    /// Checks that each number can be encoded again.
    fileprivate func checkNumbers() throws(PayloadError) {
        if let number, !number.isFinite { throw .invalid(self, "must be within the range of a double") }
        for element in elements { try element.checkNumbers() }
        for (_, value) in members { try value.checkNumbers() }
    }
}

extension ObjectFilterCondition {
    /// Number of conditions, including nested ones.
    fileprivate var count: Int {
        switch self {
        case .property: 1
        case .and(let list), .or(let list): list.reduce(1) { $0 + $1.count }
        case .not(let condition): 1 + condition.count
        }
    }
}

extension IoAssociationRule {
    /// The JSON objects that a filter condition is evaluated against. The root of a name is ``subscript(_:)``.
    public struct Objects: Sendable {
        public var source, sourceNode, actor, actorNode, context: JSONView

        /// Creates the objects from a pair, its nodes and the context.
        public init(
            source: JSONView,
            sourceNode: JSONView,
            actor: JSONView,
            actorNode: JSONView,
            context: JSONView
        ) {
            self.source = source
            self.sourceNode = sourceNode
            self.actor = actor
            self.actorNode = actorNode
            self.context = context
        }

        /// Returns the object that a ``Root`` names.
        public subscript(name: String) -> JSONView? {
            switch name {
            case "source": source
            case "sourceNode": sourceNode
            case "actor": actor
            case "actorNode": actorNode
            case "context": context
            default: nil
            }
        }
    }
}
