/// Decides on pairs with the rules and the context of a router.
struct IoRoutingDecision {
    let rules: IoAssociationRules
    var context: IoContext
    /// The advertised JSON of the context.
    var contextJSON: JSONView
    let router: RuleBasedIoRouter

    /// The way to decide on pairs. If all applicable rules are filter conditions, no application code is called.
    @ControllerActor var verdicts: IoRoutingTable.Verdicts {
        let holds: @ControllerActor ([IoAssociationRule], RoutedPoint<IoSource>, RoutedPoint<IoActor>) -> Bool?
        holds = { self.holds(forOneOf: $0, $1, $2) }
        return { [rules, contextJSON] kind in
            let candidates = rules.candidates(for: kind.valueType)
            if candidates.rules.isEmpty { return .constant(false) }
            if let conditions = candidates.conditions { return .filter(conditions, context: contextJSON) }
            return .code { source, actor in holds(candidates.rules, source, actor) }
        }
    }

    /// Returns whether one of several rules holds; they share a work budget. nil if that takes too much work.
    @ControllerActor
    private func holds(
        forOneOf rules: [IoAssociationRule],
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>
    ) -> Bool? {
        var budget = WorkBudget(steps: RoutingWork.stepsPerPair)
        var verdict: Bool? = false
        for rule in rules {
            switch holds(rule, source, actor, &budget) {
            case true: return true
            case nil: verdict = nil
            default: break
            }
        }
        return verdict
    }

    /// Returns whether a rule holds; nil if that takes too much work.
    @ControllerActor
    func holds(
        _ rule: IoAssociationRule,
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>,
        _ budget: inout WorkBudget
    ) -> Bool? {
        switch rule.condition {
        case .function(let function):
            guard let sourceNode = source.node.node, let actorNode = actor.node.node,
                let sourcePoint = source.point, let actorPoint = actor.point
            else { return false }
            return function(sourcePoint, sourceNode, actorPoint, actorNode, context, router)
        case .filter:
            let objects = IoAssociationRule.Objects(source, actor, contextJSON)
            return try? rule.filter?.holds(roots: { objects[$0] }, &budget)
        }
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
