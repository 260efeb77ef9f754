import Coaty

extension ContextDirectory {
    struct Node {
        let json: JSONView
        /// The name of the node's context.
        let context: WireName?
        /// The agent that owns the node.
        let agent: CoatyUUID?
        /// The ids of the node's sources and actors.
        let points: Set<CoatyUUID>
        /// The position in listings.
        let serial: Int
        /// The time by which the node must be advertised or discovered again, after the gateway was offline.
        var deadline: Duration?
    }

    /// The IO nodes of all contexts.
    struct Nodes {
        private var nodes: [CoatyUUID: Node] = [:]
        private var idsByContext: [WireName: Set<CoatyUUID>] = [:]
        private var nodeByPoint: [CoatyUUID: CoatyUUID] = [:]
        private(set) var byteCount = 0
        private(set) var pointCount = 0

        var count: Int { nodes.count }
        var isEmpty: Bool { nodes.isEmpty }
        var nextDeadline: Duration? { nodes.values.compactMap(\.deadline).min() }

        subscript(id: CoatyUUID) -> Node? { nodes[id] }

        /// Returns the nodes of a context, in any order.
        func nodes(of context: WireName) -> [Node] { idsByContext[context]?.compactMap { nodes[$0] } ?? [] }

        /// Returns whether a node of the context has this source or actor.
        func contains(_ point: CoatyUUID, in context: WireName) -> Bool {
            nodeByPoint[point].flatMap { nodes[$0] }?.context == context
        }

        /// The ids whose Deadvertise event removes nodes, some of them several times.
        var knownIds: [CoatyUUID] { nodes.flatMap { [$0.key] + ($0.value.agent.map { [$0] } ?? []) } }

        /// Returns the nodes that are removed when objects and agents are deadvertised.
        func ids(deadvertisedBy ids: Set<CoatyUUID>) -> [CoatyUUID] {
            nodes.compactMap { id, node in
                ids.contains(id) || node.agent.map(ids.contains) ?? false ? id : nil
            }
        }

        func ids(expiredAt now: Duration) -> [CoatyUUID] {
            nodes.compactMap { id, node in node.deadline.map { $0 <= now } ?? false ? id : nil }
        }

        /// Sets a deadline for each node to be advertised or discovered, after the gateway was offline.
        mutating func requireConfirmation(until deadline: Duration) {
            for id in nodes.keys { nodes[id]?.deadline = deadline }
        }

        mutating func confirm(_ id: CoatyUUID) { nodes[id]?.deadline = nil }

        /// Adds a node, or replaces the one with the same id.
        mutating func insert(_ node: Node, _ id: CoatyUUID) {
            remove(id)
            nodes[id] = node
            byteCount += node.json.retainedBytes
            pointCount += node.points.count
            for point in node.points { nodeByPoint[point] = id }
            if let context = node.context { idsByContext[context, default: []].insert(id) }
        }

        @discardableResult
        mutating func remove(_ id: CoatyUUID) -> Node? {
            guard let node = nodes.removeValue(forKey: id) else { return nil }
            byteCount -= node.json.retainedBytes
            pointCount -= node.points.count
            // Another node may have the same point meanwhile.
            for point in node.points where nodeByPoint[point] == id { nodeByPoint[point] = nil }
            if let context = node.context {
                idsByContext[context]?.remove(id)
                if idsByContext[context]?.isEmpty ?? false { idsByContext[context] = nil }
            }
            return node
        }
    }
}

extension JSONView {
    /// The sources and actors of an IO node.
    var ioPoints: [JSONView] { [self["ioSources"], self["ioActors"]].compactMap { $0 }.flatMap { Array($0.elements) } }
}
