package import Coaty

/// A router that simply decides on all pairs of all nodes each time. It is the reference for the real router's results
/// and speed.
package struct NaiveRouter {
    /// A source or actor with its node.
    package struct Place {
        package let point: IoPoint
        package let json: JSONView
        package let node: JSONView
    }

    /// The nodes in the order in which they joined.
    private var nodes: [(id: CoatyUUID, node: IoNode, json: JSONView)] = []
    /// The rules, all with filter conditions.
    package var rules: [IoAssociationRule] { didSet { compiled = Self.compile(rules) } }
    private var compiled: [(valueType: String?, condition: CompiledCondition)]
    package var context: JSONView

    package init(rules: [IoAssociationRule], context: JSONView) {
        self.rules = rules
        self.context = context
        compiled = Self.compile(rules)
    }

    private static func compile(_ rules: [IoAssociationRule]) -> [(valueType: String?, condition: CompiledCondition)] {
        rules.compactMap { rule in
            guard case .filter(let condition) = rule.condition else { return nil }
            return (rule.valueType, CompiledCondition(condition))
        }
    }

    package mutating func take(_ node: IoNode, json: JSONView) {
        if let index = nodes.firstIndex(where: { $0.id == node.objectId }) {
            nodes[index] = (node.objectId, node, json)
        } else {
            nodes.append((node.objectId, node, json))
        }
    }

    package mutating func remove(_ id: CoatyUUID) {
        nodes.removeAll { $0.id == id }
    }

    /// All associations that should exist.
    package var associations: [IoAssociation] {
        var taken: Set<CoatyUUID> = []
        var sources: [Place] = []
        var actors: [Place] = []
        for (_, node, json) in nodes {
            for (point, view) in zip(node.ioSources, json["ioSources"]?.elements.map(\.self) ?? [])
            where taken.insert(point.objectId).inserted {
                sources.append(Place(point: point, json: view, node: json))
            }
        }
        taken = []
        for (_, node, json) in nodes {
            for (point, view) in zip(node.ioActors, json["ioActors"]?.elements.map(\.self) ?? [])
            where taken.insert(point.objectId).inserted {
                actors.append(Place(point: point, json: view, node: json))
            }
        }
        return sources.flatMap { source in
            let wanted = actors.filter { actor in
                isSame(source.point.valueType, actor.point.valueType)
                    && (source.point.useRawIoValues ?? false) == (actor.point.useRawIoValues ?? false)
                    && holds(source, actor)
            }
            let rates = wanted.flatMap { [source.point.updateRate, $0.point.updateRate] }.compactMap(\.self)
            return wanted.map {
                IoAssociation(
                    ioSourceId: source.point.objectId,
                    ioActorId: $0.point.objectId,
                    updateRate: rates.max()
                )
            }
        }
    }

    private func holds(_ source: Place, _ actor: Place) -> Bool {
        let own = compiled.filter { isSame($0.valueType, source.point.valueType) }
        let candidates = own.isEmpty ? compiled.filter { $0.valueType == nil } : own
        return candidates.contains { rule in
            let objects = IoAssociationRule.Objects(
                source: source.json,
                sourceNode: source.node,
                actor: actor.json,
                actorNode: actor.node,
                context: context
            )
            var budget = WorkBudget(steps: 10_000)
            return (try? rule.condition.holds(roots: { objects[$0] }, &budget)) ?? false
        }
    }

    /// Compares names byte by byte, like MQTT and other agents. Swift compares strings by canonical equivalence.
    private func isSame(_ left: String?, _ right: String?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.utf8.elementsEqual(right.utf8)
    }
}
