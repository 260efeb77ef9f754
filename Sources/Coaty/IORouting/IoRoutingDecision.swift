/// Decides on pairs by rules, in a context.
package struct IoRoutingDecision {
    let rules: IoAssociationRules
    var context: IoContext
    /// The context as it is advertised.
    var contextJSON: JSONView
    let router: RuleBasedIoRouter

    package init(rules: IoAssociationRules, context: IoContext, contextJSON: JSONView, router: RuleBasedIoRouter) {
        self.rules = rules
        self.context = context
        self.contextJSON = contextJSON
        self.router = router
    }

    /// How pairs are decided. Where all rules that count are filter conditions, no application code is called.
    @ControllerActor package var verdicts: IoRoutingTable.Verdicts {
        let isAssociated: @ControllerActor (IoAssociationRule, RoutedPoint<IoSource>, RoutedPoint<IoActor>) -> Bool
        isAssociated = { holds($0, $1, $2) }
        return { [rules, contextJSON] kind in
            let candidates = rules.candidates(for: kind.valueType)
            let filters = candidates.compactMap(\.filter)
            if candidates.isEmpty { return .constant(false) }
            guard filters.count == candidates.count else {
                return .code { source, actor in candidates.contains { isAssociated($0, source, actor) } }
            }
            return .filter { source, actor in
                let objects = IoAssociationRule.Objects(source, actor, contextJSON)
                return filters.contains { $0.holdsForPair { objects[$0] } }
            }
        }
    }

    @ControllerActor
    func holds(
        _ rule: IoAssociationRule,
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>
    ) -> Bool {
        switch rule.condition {
        case .function(let function):
            guard let sourceNode = source.node.node, let actorNode = actor.node.node,
                let sourcePoint = source.point, let actorPoint = actor.point
            else { return false }
            return function(sourcePoint, sourceNode, actorPoint, actorNode, context, router)
        case .filter:
            let objects = IoAssociationRule.Objects(source, actor, contextJSON)
            return rule.filter?.holdsForPair { objects[$0] } ?? false
        }
    }
}

extension CompiledCondition {
    /// Not where it takes more work than comparing some thousand scalars.
    fileprivate func holdsForPair(roots: (String) -> JSONView?) -> Bool {
        var budget = WorkBudget(steps: ObjectFilterCondition.maximumStepsOfPairs)
        return (try? holds(roots: roots, &budget)) ?? false
    }
}

extension IoAssociationRule.Objects {
    init(_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>, _ context: JSONView) {
        self.init(
            source: source.json,
            sourceNode: source.node.json,
            actor: actor.json,
            actorNode: actor.node.json,
            context: context
        )
    }
}
