import Coaty

extension ContextDirectory {
    struct Pair: Hashable {
        let sourceId: CoatyUUID
        let actorId: CoatyUUID
    }

    /// An association as it was last published.
    struct Association {
        let route: String
        let updateRate: Int?
        let router: CoatyUUID
        /// The position in listings.
        let serial: Int
    }

    /// A context, the agents that route it, and their associations.
    ///
    /// Every association belongs to a router in ``routers``, and every router that is not listed has associations.
    /// Therefore the context must be removed when it has no routers.
    struct Context {
        /// Maximum number of routers of one context. Associations of further ones are ignored.
        static let maximumRouters = 100

        var json: JSONView
        let name: WireName
        /// The position in listings.
        let serial: Int
        /// Observes Associate events of the context.
        var observation: Subscription?
        private(set) var routers: [CoatyUUID: Router] = [:]
        private(set) var associations: [Pair: Association] = [:]
        /// The associations of a source or an actor.
        private var pairsByPoint: [CoatyUUID: Set<Pair>] = [:]
        /// The size of ids and routes, in bytes.
        private var textBytes = 0
        /// The agents that are routers no longer, since the last call of ``takeFormerRouters()``.
        private var formerRouters: [CoatyUUID] = []

        init(json: JSONView, name: WireName, serial: Int) {
            self.json = json
            self.name = name
            self.serial = serial
        }

        var byteCount: Int { json.retainedBytes + textBytes }

        /// The present routers, in the order in which they last sent the context.
        var listedRouters: [CoatyUUID] {
            routers.values.filter(\.isListed)
                .sorted { ($0.lastShown ?? 0, $0.firstSerial) < ($1.lastShown ?? 0, $1.firstSerial) }.map(\.id)
        }

        /// Whether no association is known to be missing.
        var isComplete: Bool { routers.values.allSatisfy(\.isFollowed) }

        /// The associations in the order of their arrival.
        var listedAssociations: [IoAssociation] {
            associations.sorted { $0.value.serial < $1.value.serial }.map { pair, association in
                IoAssociation(
                    ioSourceId: pair.sourceId,
                    ioActorId: pair.actorId,
                    updateRate: association.updateRate
                )
            }
        }

        var nextDeadline: Duration? { routers.values.compactMap(\.deadline).min() }
    }
}

extension ContextDirectory.Context {
    typealias Pair = ContextDirectory.Pair
    typealias Router = ContextDirectory.Router

    // MARK: - Routers

    /// Handles an event by which an agent counts as a router.
    ///
    /// - Parameter isFirst: whether the agent can't have published associations before.
    /// - Returns: false if there are too many routers.
    @discardableResult
    mutating func noteRouter(_ agent: CoatyUUID, serial: Int, showsContext: Bool, isFirst: Bool = false) -> Bool {
        if routers[agent] == nil {
            guard routers.count < Self.maximumRouters else { return false }
            routers[agent] = Router(id: agent, firstSerial: serial, isFollowed: isFirst)
            textBytes += agent.string.utf8.count
        }
        routers[agent]?.presence = .present
        if showsContext { routers[agent]?.lastShown = serial }
        return true
    }

    /// Records that agents were deadvertised.
    mutating func lose(_ agents: Set<CoatyUUID>, until deadline: Duration) {
        for id in routers.keys where agents.contains(id) {
            if routers[id]?.presence == .present { routers[id]?.presence = .lost(until: deadline) }
            if routers[id]?.pairs.isEmpty ?? false { forget(id) }
        }
    }

    /// Removes an agent that no longer routes the context, and its associations.
    mutating func withdraw(_ agent: CoatyUUID) -> IoAssociationChanges {
        let changes = end(routers[agent]?.pairs ?? [])
        forget(agent)
        return changes
    }

    /// Sets a deadline for an event from each router, after the gateway was offline.
    mutating func requireConfirmation(until deadline: Duration) {
        for id in routers.keys {
            routers[id]?.presence = .unconfirmed(until: deadline)
            routers[id]?.isFollowed = false
        }
    }

    /// Records that an association of a router is not listed.
    mutating func noteMissing(of router: CoatyUUID) { routers[router]?.isFollowed = false }

    mutating func takeFormerRouters() -> [CoatyUUID] {
        defer { formerRouters = [] }
        return formerRouters
    }

    /// Ends the routers and associations that were not confirmed in time.
    ///
    /// - Parameter isKnown: whether an IO node of this context has the source or actor.
    mutating func expire(at now: Duration, isKnown: (CoatyUUID) -> Bool) -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        for router in routers.values {
            guard let deadline = router.deadline, deadline <= now else { continue }
            if case .lost = router.presence {
                routers[router.id]?.presence = .gone
                let unknown = router.pairs.filter { !isKnown($0.sourceId) || !isKnown($0.actorId) }
                if !unknown.isEmpty { noteMissing(of: router.id) }
                changes.removed += end(unknown).removed
            } else {
                changes.removed += withdraw(router.id).removed
            }
        }
        return changes
    }

    private mutating func forget(_ agent: CoatyUUID) {
        guard routers.removeValue(forKey: agent) != nil else { return }
        textBytes -= agent.string.utf8.count
        formerRouters.append(agent)
    }

    // MARK: - Associations

    /// Adds an association.
    ///
    /// - Precondition: its router was heard.
    mutating func associate(_ pair: Pair, _ association: ContextDirectory.Association) -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        let published = IoAssociation(
            ioSourceId: pair.sourceId,
            ioActorId: pair.actorId,
            updateRate: association.updateRate
        )
        if let former = associations[pair] {
            if (former.route, former.updateRate) != (association.route, association.updateRate) {
                changes.changed = [published]
            }
            textBytes -= former.byteCount(pair)
            if former.router != association.router { release(pair, of: former.router) }
        } else {
            changes.added = [published]
            pairsByPoint[pair.sourceId, default: []].insert(pair)
            pairsByPoint[pair.actorId, default: []].insert(pair)
        }
        associations[pair] = association
        textBytes += association.byteCount(pair)
        routers[association.router]?.pairs.insert(pair)
        return changes
    }

    /// Ends associations that exist.
    mutating func end(_ pairs: some Collection<Pair>) -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        for pair in pairs {
            guard let association = associations.removeValue(forKey: pair) else { continue }
            textBytes -= association.byteCount(pair)
            for point in [pair.sourceId, pair.actorId] {
                pairsByPoint[point]?.remove(pair)
                if pairsByPoint[point]?.isEmpty ?? false { pairsByPoint[point] = nil }
            }
            release(pair, of: association.router)
            changes.removed.append(IoAssociation(ioSourceId: pair.sourceId, ioActorId: pair.actorId))
        }
        return changes
    }

    /// Ends the associations of removed sources and actors.
    mutating func endPoints(_ points: some Collection<CoatyUUID>) -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        for point in points {
            let pairs = pairsByPoint[point] ?? []
            for pair in pairs {
                // A router that is offline may not see that the node leaves, and may keep the association.
                guard let router = associations[pair]?.router, routers[router]?.presence != .present else { continue }
                noteMissing(of: router)
            }
            changes.removed += end(pairs).removed
        }
        return changes
    }

    /// Ends all associations.
    mutating func endAll() -> IoAssociationChanges {
        let changes = end(Array(associations.keys))
        for id in Array(routers.keys) { forget(id) }
        return changes
    }

    private mutating func release(_ pair: Pair, of router: CoatyUUID) {
        routers[router]?.pairs.remove(pair)
        // A departed router is kept only because of its associations.
        if let left = routers[router], !left.isListed, left.pairs.isEmpty { forget(router) }
    }
}

extension ContextDirectory.Association {
    /// Returns the size of its ids and its route, in bytes.
    func byteCount(_ pair: ContextDirectory.Pair) -> Int {
        route.utf8.count + pair.sourceId.string.utf8.count + pair.actorId.string.utf8.count
    }
}
