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
