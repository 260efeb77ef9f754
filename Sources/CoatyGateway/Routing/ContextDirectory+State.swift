import Coaty

/// What a directory knows.
extension ContextDirectory {
    struct Context {
        var json: JSONView
        let name: WireName
        var router: CoatyUUID?
        var otherRouters: [CoatyUUID] = []
        /// In the order of which contexts came.
        let serial: Int
        var told: [Pair: (what: Told, serial: Int)] = [:]
        var associates: Subscription?
    }

    struct Node {
        let json: JSONView
        let name: WireName?
        let agent: CoatyUUID?
        let serial: Int
    }

    struct Pair: Hashable {
        let sourceId: CoatyUUID
        let actorId: CoatyUUID
    }

    /// What a router has told of a pair.
    struct Told: Equatable {
        let route: String
        let updateRate: Int?
    }

    struct State {
        var contexts: [CoatyUUID: Context] = [:]
        var nodes: [CoatyUUID: Node] = [:]
        /// By the name of their context.
        var nodeIds: [WireName: Set<CoatyUUID>] = [:]
        /// Counts all that came, for its order.
        var lastSerial = 0
        /// The contexts and nodes that have not shown themselves since the last connect.
        var unconfirmed: Set<CoatyUUID> = []
        /// By agent, the hosted contexts that it has, too.
        var otherRouters: [CoatyUUID: Set<CoatyUUID>] = [:]
        var associationCount = 0
        /// Of the texts of contexts and nodes.
        var byteCount = 0
        var observations: [Subscription] = []
        var request: PendingRequest?
    }
}

extension ContextDirectory.Context {
    /// How many other routers of one context are told apart.
    private static var maximumRouters: Int { 100 }

    mutating func note(_ other: CoatyUUID?) {
        guard let other, !otherRouters.contains(other), otherRouters.count < Self.maximumRouters else { return }
        otherRouters.append(other)
    }

    var associations: [IoAssociation] {
        told.sorted { $0.value.serial < $1.value.serial }.map { pair, told in
            IoAssociation(ioSourceId: pair.sourceId, ioActorId: pair.actorId, updateRate: told.what.updateRate)
        }
    }
}

extension ContextDirectory.State {
    /// - Returns: whether there is room for a text in the place of another one, which is counted then.
    mutating func makeRoom(for new: JSONView, insteadOf old: JSONView?) -> Bool {
        let byteCount = byteCount + new.retainedBytes - (old?.retainedBytes ?? 0)
        guard byteCount <= ContextDirectory.maximumBytes else { return false }
        self.byteCount = byteCount
        return true
    }

    mutating func nextSerial() -> Int {
        lastSerial += 1
        return lastSerial
    }

    mutating func removeNode(_ id: CoatyUUID) {
        guard let node = nodes.removeValue(forKey: id) else { return }
        byteCount -= node.json.retainedBytes
        if let name = node.name { forget(id, name) }
    }

    mutating func forget(_ nodeId: CoatyUUID, _ name: WireName) {
        nodeIds[name]?.remove(nodeId)
        if nodeIds[name]?.isEmpty ?? false { nodeIds[name] = nil }
    }

    /// A context and its nodes, not yet in their order: that is not made under the lock.
    func found(
        _ context: ContextDirectory.Context
    ) -> (context: ContextDirectory.Context, nodes: [ContextDirectory.Node]) {
        (context, nodeIds[context.name]?.compactMap { nodes[$0] } ?? [])
    }
}

extension ContextDirectory.Entry {
    init(_ found: (context: ContextDirectory.Context, nodes: [ContextDirectory.Node])) {
        let context = found.context
        json = context.json
        router = context.router
        otherRouters = context.otherRouters.filter { $0 != context.router }
        nodes = found.nodes.sorted { $0.serial < $1.serial }.map(\.json)
        associations = context.associations
    }
}
