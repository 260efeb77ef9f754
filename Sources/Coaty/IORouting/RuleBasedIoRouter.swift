/// Decides whether a source and an actor are to be associated.
public typealias IoRoutingRuleConditionFunc =
    @ControllerActor (
        _ source: IoSource,
        _ sourceNode: IoNode,
        _ actor: IoActor,
        _ actorNode: IoNode,
        _ context: IoContext,
        _ router: RuleBasedIoRouter
    ) -> Bool

/// A rule by which sources and actors are associated.
public struct IoAssociationRule {
    /// What the rule does, for people.
    public let name: String
    /// The value type that the rule is for; nil for value types that have no rule of their own.
    public let valueType: String?
    /// Whether a pair is associated.
    public let condition: IoRoutingRuleConditionFunc

    /// Creates a rule.
    public init(name: String, valueType: String? = nil, condition: @escaping IoRoutingRuleConditionFunc) {
        self.name = name
        self.valueType = valueType
        self.condition = condition
    }
}

/// Associates sources with actors by rules, which are the option `rules`.
///
/// Rules of the pair's value type count or, only where there are none, those without one. The first that holds associates.
open class RuleBasedIoRouter: IoRouter {
    private var rules: [String?: [IoAssociationRule]] = [:]

    /// Takes the rules from the options.
    open override func onInit() {
        super.onInit()
        rules = Dictionary(grouping: options.extra["rules"] as? [IoAssociationRule] ?? [], by: \.valueType)
    }

    /// Whether a rule holds for the pair.
    open override func shouldAssociate(
        source: IoSource,
        sourceNode: IoNode,
        actor: IoActor,
        actorNode: IoNode
    ) -> Bool {
        guard let ioContext else { return false }
        let candidates = rules[source.valueType] ?? rules[nil] ?? []
        return candidates.contains { $0.condition(source, sourceNode, actor, actorNode, ioContext, self) }
    }
}
