import Base
import Coaty

extension ContextDirectory {
    /// The known contexts and nodes, and their changes by events. Time is passed in; effects are collected in
    /// ``effects``.
    struct State {
        private let limits: Limits
        private(set) var contexts: [CoatyUUID: Context] = [:]
        private(set) var nodes = Nodes()
        /// Other routers of hosted contexts, by agent.
        private var otherRouters: [CoatyUUID: Set<CoatyUUID>] = [:]
        /// Agents that have routed a context and are no longer listed. If one returns, its earlier associations are unknown.
        private var formerRouters: Set<CoatyUUID> = []
        /// When all routers must have answered since the gateway was last offline; nil before it was online.
        private var settlesAt: Duration?
        private var lastSerial = 0
        private(set) var associationCount = 0
        /// The size of all contexts and associations, in bytes.
        private var contextBytes = 0
        var effects = Effects()
        var observations: [Subscription] = []
        var request: PendingRequest?

        init(_ limits: Limits) { self.limits = limits }
    }

    /// The external effects of a change of the state.
    struct Effects {
        /// Changes to report to the watchers of a context, in order.
        var changes: [(contextId: CoatyUUID, changes: IoAssociationChanges)] = []
        /// Subscriptions to end after the lock is released.
        var ended: [Subscription] = []
    }
}

extension ContextDirectory.State {
    typealias Context = ContextDirectory.Context

    /// The earliest deadline of an unconfirmed entry.
    var nextDeadline: Duration? {
        (contexts.values.compactMap(\.nextDeadline) + [nodes.nextDeadline].compactMap { $0 }).min()
    }

    /// Whether nothing is stored that an agent could deadvertise.
    var isEmpty: Bool { contexts.isEmpty && nodes.isEmpty && otherRouters.isEmpty }

    /// The ids whose Deadvertise event changes something, some of them several times.
    var knownIds: [CoatyUUID] {
        Array(otherRouters.keys) + nodes.knownIds + contexts.flatMap { [$0.key] + $0.value.routers.keys }
    }

    /// The approximate number of ``knownIds``.
    var knownCount: Int { otherRouters.count + 2 * nodes.count + 2 * contexts.count }

    /// The size of all stored data, in bytes.
    var byteCount: Int { contextBytes + nodes.byteCount }

    // MARK: - Contexts

    /// Processes a context that an agent has sent.
    ///
    /// - Parameter now: the current time.
    /// - Returns: whether the context is new, so that its Associate events must be observed.
    mutating func show(
        _ id: CoatyUUID,
        _ json: JSONView,
        name: WireName,
        by agent: CoatyUUID,
        _ showing: ContextDirectory.Showing,
        at now: Duration
    ) -> Bool {
        let serial = nextSerial()
        // A router that was online before has answered by then, and is known.
        let isSettled = settlesAt.map { $0 <= now } ?? false
        let isFirst =
            showing == .advertised && isSettled && !formerRouters.contains(agent)
            && formerRouters.count < ContextDirectory.maximumFormerRouters
        if showing.isByRouter(agent, json) || contexts[id]?.routers[agent] != nil {
            // Nodes refer to a context by its name: with another name, it is another context.
            if let known = contexts[id]?.name, known != name { change(id) { $0.endAll() } }
            guard contexts[id] != nil else {
                guard contexts.count < limits.observedContexts, hasRoom(for: json.retainedBytes) else {
                    return false
                }
                var context = Context(json: json, name: name, serial: serial)
                context.noteRouter(agent, serial: serial, showsContext: true, isFirst: isFirst)
                contextBytes += context.byteCount
                contexts[id] = context
                return true
            }
            change(id) { context in
                context.noteRouter(agent, serial: serial, showsContext: true, isFirst: isFirst)
                return IoAssociationChanges()
            }
        } else if showing != .completed {
            return false
        }
        // The completed object of an Update event is used, whichever agent sends it.
        let isNamed = contexts[id]?.name == name
        guard isNamed, hasRoom(for: json.retainedBytes - (contexts[id]?.json.retainedBytes ?? 0)) else { return false }
        change(id) { context in
            context.json = json
            return IoAssociationChanges()
        }
        return false
    }

    /// Stores the observation of a context's Associate events.
    mutating func observe(_ id: CoatyUUID, by observation: Subscription) {
        guard contexts[id] != nil else { return effects.ended.append(observation) }
        if let former = contexts[id]?.observation { effects.ended.append(former) }
        contexts[id]?.observation = observation
    }

    /// Records that an agent answers with a hosted context.
    ///
    /// - Returns: whether this was not known before.
    mutating func noteOtherRouter(_ agent: CoatyUUID, of id: CoatyUUID) -> Bool {
        guard otherRouters[agent] != nil || otherRouters.count < ContextDirectory.maximumOtherRouters else {
            return false
        }
        return otherRouters[agent, default: []].insert(id).inserted
    }

    // MARK: - Associations

    /// Processes an Associate event: without a route it dissolves the association.
    mutating func associate(_ event: AssociateEvent, by agent: CoatyUUID, in id: CoatyUUID) {
        let data = event.data
        let pair = ContextDirectory.Pair(sourceId: data.ioSourceId, actorId: data.ioActorId)
        guard let route = data.associatingRoute else { return change(id) { $0.end([pair]) } }
        let serial = nextSerial()
        let known = contexts[id]?.associations[pair]
        let association = ContextDirectory.Association(
            route: route,
            updateRate: data.updateRate,
            router: agent,
            serial: known?.serial ?? serial
        )
        let hasRoom =
            (known != nil || associationCount < maximumPoints)
            && hasRoom(for: association.byteCount(pair) - (known?.byteCount(pair) ?? 0))
        change(id) { context in
            guard context.noteRouter(agent, serial: serial, showsContext: false) else { return .init() }
            guard hasRoom else {
                context.noteMissing(of: agent)
                return .init()
            }
            return context.associate(pair, association)
        }
    }

    // MARK: - Nodes

    /// Processes a node that was advertised or discovered.
    mutating func show(node json: JSONView, _ id: CoatyUUID, by sender: CoatyUUID?) {
        let points = json.ioPoints
        guard !points.isEmpty else { return removeNode(id) }
        nodes.confirm(id)
        let known = nodes[id]
        guard known != nil || nodes.count < limits.observedIoNodes,
            nodes.pointCount + points.count - (known?.points.count ?? 0) <= maximumPoints,
            hasRoom(for: json.retainedBytes - (known?.json.retainedBytes ?? 0))
        else { return }
        let node = ContextDirectory.Node(
            json: json,
            context: json["name"]?.string.map(WireName.init),
            // An agent that answers with a stored copy does not own the node.
            agent: json["parentObjectId"]?.string.map(CoatyUUID.init(wire:)) ?? sender,
            points: Set(points.compactMap { $0["objectId"]?.string.map(CoatyUUID.init(wire:)) }),
            serial: known?.serial ?? nextSerial()
        )
        nodes.insert(node, id)
        guard let known else { return }
        endPoints(
            known.context == node.context ? known.points.subtracting(node.points) : known.points,
            in: known.context
        )
    }

    private mutating func removeNode(_ id: CoatyUUID) {
        guard let node = nodes.remove(id) else { return }
        endPoints(node.points, in: node.context)
    }

    private mutating func endPoints(_ points: Set<CoatyUUID>, in name: WireName?) {
        guard !points.isEmpty else { return }
        for id in ids(where: { $0.name == name }) { change(id) { $0.endPoints(points) } }
    }

    // MARK: - Leaving

    /// Processes a Deadvertise event.
    ///
    /// - Parameter deadline: the time until which lost routers may come back.
    /// - Returns: whether a context has lost a router and stays: other routers may have another version of it.
    mutating func deadvertise(_ ids: Set<CoatyUUID>, by sender: CoatyUUID?, until deadline: Duration) -> Bool {
        for id in ids { otherRouters[id] = nil }
        for id in nodes.ids(deadvertisedBy: ids) { removeNode(id) }
        var isReduced = false
        if let sender {
            for id in ids where contexts[id]?.routers[sender] != nil {
                change(id) { $0.withdraw(sender) }
                isReduced = isReduced || contexts[id] != nil
            }
        }
        for id in self.ids(where: { $0.routers.keys.contains(where: ids.contains) }) {
            change(id) { context in
                context.lose(ids, until: deadline)
                return IoAssociationChanges()
            }
            isReduced = isReduced || contexts[id] != nil
        }
        return isReduced
    }

    /// Sets a deadline for everything to be advertised or discovered: departures while the gateway was offline were not
    /// reported.
    mutating func requireConfirmation(until deadline: Duration) {
        // Routers that are still present answer again.
        otherRouters = [:]
        settlesAt = deadline
        for id in Array(contexts.keys) { contexts[id]?.requireConfirmation(until: deadline) }
        nodes.requireConfirmation(until: deadline)
    }

    /// Ends everything that was not confirmed in time.
    mutating func expire(at now: Duration) {
        for id in nodes.ids(expiredAt: now) { removeNode(id) }
        let nodes = nodes
        for id in ids(where: { $0.nextDeadline.map { $0 <= now } ?? false }) {
            change(id) { context in
                let name = context.name
                return context.expire(at: now) { nodes.contains($0, in: name) }
            }
        }
    }

    // MARK: - Bookkeeping

    /// Changes a context, and removes it if no agent routes it any longer.
    private mutating func change(_ id: CoatyUUID, _ body: (inout Context) -> IoAssociationChanges) {
        guard let index = contexts.index(forKey: id) else { return }
        associationCount -= contexts.values[index].associations.count
        contextBytes -= contexts.values[index].byteCount
        let changes = body(&contexts.values[index])
        if !changes.isEmpty { effects.changes.append((id, changes)) }
        for agent in contexts.values[index].takeFormerRouters()
        where formerRouters.count < ContextDirectory.maximumFormerRouters {
            formerRouters.insert(agent)
        }
        if contexts.values[index].routers.isEmpty {
            if let observation = contexts.remove(at: index).value.observation { effects.ended.append(observation) }
        } else {
            associationCount += contexts.values[index].associations.count
            contextBytes += contexts.values[index].byteCount
        }
    }

    private func ids(where isIncluded: (Context) -> Bool) -> [CoatyUUID] {
        contexts.compactMap { isIncluded($0.value) ? $0.key : nil }
    }

    private var maximumPoints: Int { ContextDirectory.pointsPerNode * limits.observedIoNodes }

    private func hasRoom(for bytes: Int) -> Bool {
        byteCount + bytes <= limits.contextMemory
    }

    private mutating func nextSerial() -> Int {
        lastSerial += 1
        return lastSerial
    }
}
