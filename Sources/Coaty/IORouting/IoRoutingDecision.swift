/// Decides on pairs by rules in a context.
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

    /// The rule that associates a pair; nil where none does.
    @ControllerActor
    package func rule(for source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> IoAssociationRule? {
        rules.candidates(for: source.kind.valueType).first { holds($0, source, actor) }
    }

    @ControllerActor
    func holds(
        _ rule: IoAssociationRule,
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>
    ) -> Bool {
        switch rule.condition {
        case .function(let function):
            return function(source.point, source.node.node, actor.point, actor.node.node, context, router)
        case .filter(let condition):
            let objects = objects(source, actor)
            return condition.matches { objects[$0] }
        }
    }

    /// What a filter condition asks about.
    func objects(
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>
    ) -> IoAssociationRule.Objects {
        IoAssociationRule.Objects(
            source: source.json,
            sourceNode: source.node.json,
            actor: actor.json,
            actorNode: actor.node.json,
            context: contextJSON
        )
    }
}
