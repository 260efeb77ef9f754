import Coaty
import Synchronization

/// The IO contexts that other agents route, as far as these have shown themselves: advertised or discovered contexts, their
/// nodes, and the associations that routers have told since the gateway joined.
final class ContextDirectory: Sendable {
    /// How many contexts are known at most.
    static let maximumContexts = 1_000
    /// How many IO nodes are known at most, whatever their context.
    static let maximumNodes = 10_000
    /// How many associations are known at most, whatever their context.
    static let maximumAssociations = 100_000
    /// How many bytes the texts of all contexts and nodes have at most.
    static let maximumBytes = 64 << 20
    /// How often to ask for contexts and nodes at most.
    static let askInterval = Duration.seconds(1)
    /// How long contexts and nodes may take to show themselves after each connect; then they count as gone.
    static let confirmationTime = Duration.seconds(10)
    /// How many other routers of hosted contexts are told apart.
    static let maximumOtherRouters = 100

    /// A context, and all that is known of it.
    struct Entry: Sendable {
        let json: JSONView
        let router: CoatyUUID?
        let otherRouters: [CoatyUUID]
        let nodes: [JSONView]
        let associations: [IoAssociation]
    }

    private let manager: CommunicationManager
    /// Those that the gateway routes itself.
    private let hosted: Set<CoatyUUID>
    private let feed: RoutingFeed
    /// By which the time for that is taken.
    private let clock: any Clock<Duration>
    /// Called once with each agent that answers that it has a hosted context, too.
    private let foundOtherRouter: @Sendable (_ contextId: CoatyUUID, _ router: CoatyUUID) -> Void
    private let state = Mutex(State())

    init(
        manager: CommunicationManager,
        hosted: Set<CoatyUUID>,
        feed: RoutingFeed,
        clock: any Clock<Duration> = ContinuousClock(),
        foundOtherRouter: @escaping @Sendable (_ contextId: CoatyUUID, _ router: CoatyUUID) -> Void
    ) {
        self.manager = manager
        self.hosted = hosted
        self.feed = feed
        self.clock = clock
        self.foundOtherRouter = foundOtherRouter
    }

    /// All contexts, in the order in which they came.
    var entries: [Entry] {
        let found = state.withLock { state in state.contexts.values.map { state.found($0) } }
        return found.sorted { $0.context.serial < $1.context.serial }.map(Entry.init)
    }

    func entry(_ id: CoatyUUID) -> Entry? {
        state.withLock { state in state.contexts[id].map { state.found($0) } }.map(Entry.init)
    }

    func contains(_ id: CoatyUUID) -> Bool { state.withLock { $0.contexts[id] != nil } }

    func json(_ id: CoatyUUID) -> JSONView? { state.withLock { $0.contexts[id]?.json } }

    /// Watches the associations of a context: as they are, then each change.
    ///
    /// - Returns: what ends the watching; nil where there is no such context.
    func watch(_ id: CoatyUUID, _ handler: @escaping RoutingFeed.Handler) -> (@Sendable () -> Void)? {
        // Under the lock, so that no change is in between; a handler only queues.
        state.withLock { state in
            state.contexts[id].map { feed.watch(id, from: $0.associations, handler) }
        }
    }

    /// Takes a context as it was completed: not every router advertises what it has taken over.
    func takeCompleted(_ event: CompleteEvent, _ id: CoatyUUID) {
        let isKnown = state.withLock { state in
            guard let json = event.payload.json["object"], let known = state.contexts[id]?.json else { return false }
            state.unconfirmed.remove(id)
            // Somebody else than the router may have completed it.
            if state.makeRoom(for: json, insteadOf: known) { state.contexts[id]?.json = json }
            return true
        }
        if !isKnown { takeContext(event.payload, from: event.sourceId) }
    }

    // MARK: - Looking

    /// Observes what shows contexts. To be called before the communication manager starts.
    ///
    /// - Returns: the task that asks; it ends when it is cancelled.
    func start() -> Task<Void, Never> {
        let (asks, ask) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observations = [
            manager.subscribe(.advertise(withCoreType: .IoContext)) { [weak self] in
                self?.takeContext($0.payload, from: $0.sourceId)
            },
            manager.subscribe(.advertise(withCoreType: .IoNode)) { [weak self] in
                self?.takeNode($0.payload, from: $0.sourceId)
            },
            // Some agents in the field advertise only one of their IO nodes when they join.
            manager.subscribe(.advertise(withCoreType: .Identity)) { _ in ask.yield() },
            manager.subscribe(.deadvertise) { [weak self] in self?.remove($0.data.objectIds) },
        ]
        state.withLock { $0.observations = observations }
        let states = manager.getCommunicationState()
        return Task { [weak self] in
            await withTaskGroup { group in
                group.addTask { [weak self] in
                    var confirmation: Task<Void, Never>?
                    for await state in states where state == .online {
                        confirmation?.cancel()
                        self?.doubt()
                        ask.yield()
                        confirmation = Task { [weak self] in await self?.removeUnconfirmed() }
                    }
                    confirmation?.cancel()
                }
                group.addTask { [weak self] in
                    for await _ in asks {
                        self?.ask()
                        try? await Task.sleep(for: Self.askInterval)
                    }
                }
            }
        }
    }

    /// Nobody told who has gone while the link was away.
    private func doubt() {
        state.withLock { $0.unconfirmed = Set($0.contexts.keys).union($0.nodes.keys) }
    }

    private func removeUnconfirmed() async {
        // Where the link is away again, nobody could show itself; the next connect gives time anew.
        guard (try? await clock.sleep(for: Self.confirmationTime)) != nil, !Task.isCancelled, manager.isOnline else {
            return
        }
        let ids = state.withLock { $0.unconfirmed }
        if !ids.isEmpty { remove(Array(ids)) }
    }

    private func ask() {
        guard let event = try? DiscoverEvent.with(coreTypes: [.IoContext, .IoNode]) else { return }
        // Offline there is nobody to ask; the next connection asks.
        let request = try? manager.publish(event) { [weak self] resolve in
            switch resolve.payload.json["object"]?["coreType"]?.string {
            case CoreType.IoContext.rawValue:
                self?.noteOtherRouter(resolve)
                self?.takeContext(resolve.payload, from: resolve.sourceId)
            case CoreType.IoNode.rawValue: self?.takeNode(resolve.payload, from: resolve.sourceId)
            default: break
            }
        }
        let old = state.withLock { state in
            let old = state.request
            state.request = request
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// What is advertised the router of the context sees by itself.
    private func noteOtherRouter(_ resolve: ResolveEvent) {
        guard let agent = resolve.sourceId, agent != manager.identityId,
            let id = resolve.payload.json["object"]?["objectId"]?.string.map(CoatyUUID.init(wire:)), hosted.contains(id)
        else { return }
        let isNew = state.withLock { state in
            guard state.otherRouters[agent] != nil || state.otherRouters.count < Self.maximumOtherRouters else {
                return false
            }
            return state.otherRouters[agent, default: []].insert(id).inserted
        }
        if isNew { foundOtherRouter(id, agent) }
    }

    private func takeContext(_ payload: Payload, from agent: CoatyUUID?) {
        guard agent != manager.identityId, let json = payload.json["object"], let id = json["objectId"]?.string,
            let name = json["name"]?.string, WireName.isPublishable(name)
        else { return }
        let contextId = CoatyUUID(wire: id)
        guard !hosted.contains(contextId) else { return }
        let level = WireName(name)
        // Under another name it is another context.
        if let known = state.withLock({ $0.contexts[contextId]?.name }), known != level { remove([contextId]) }
        let isNew = state.withLock { state -> Bool in
            state.unconfirmed.remove(contextId)
            let known = state.contexts[contextId]?.json
            guard known != nil || state.contexts.count < Self.maximumContexts,
                state.makeRoom(for: json, insteadOf: known)
            else { return false }
            guard known != nil else {
                state.contexts[contextId] = Context(json: json, name: level, router: agent, serial: state.nextSerial())
                return true
            }
            state.contexts[contextId]?.json = json
            if let router = state.contexts[contextId]?.router, router != agent {
                state.contexts[contextId]?.note(router)
                state.contexts[contextId]?.router = agent
            }
            return false
        }
        guard isNew, let observation = try? EventObservation<AssociateEvent>.associate(ioContextName: name) else {
            return
        }
        let subscription = manager.subscribe(observation) { [weak self] in self?.take($0, contextId) }
        let isKept = state.withLock { state in
            state.contexts[contextId]?.associates = subscription
            return state.contexts[contextId] != nil
        }
        if !isKept { subscription.cancel() }
    }

    private func takeNode(_ payload: Payload, from agent: CoatyUUID?) {
        guard let json = payload.json["object"], let text = json["objectId"]?.string else { return }
        let id = CoatyUUID(wire: text)
        var ioPoints = [json["ioSources"], json["ioActors"]].compactMap(\.self).lazy.flatMap(\.elements).makeIterator()
        let isGone = ioPoints.next() == nil
        state.withLock { state in
            state.unconfirmed.remove(id)
            let known = state.nodes[id]
            guard !isGone else { return state.removeNode(id) }
            guard known != nil || state.nodes.count < Self.maximumNodes,
                state.makeRoom(for: json, insteadOf: known?.json)
            else { return }
            if let name = known?.name { state.forget(id, name) }
            let name = json["name"]?.string.map(WireName.init)
            if let name { state.nodeIds[name, default: []].insert(id) }
            state.nodes[id] = Node(json: json, name: name, agent: agent, serial: known?.serial ?? state.nextSerial())
        }
    }

    private func take(_ event: AssociateEvent, _ contextId: CoatyUUID) {
        let data = event.data
        let pair = Pair(sourceId: data.ioSourceId, actorId: data.ioActorId)
        let now = data.associatingRoute.map { Told(route: $0, updateRate: data.updateRate) }
        state.withLock { state in
            guard state.contexts[contextId] != nil else { return }
            if event.sourceId != state.contexts[contextId]?.router { state.contexts[contextId]?.note(event.sourceId) }
            let before = state.contexts[contextId]?.told[pair]
            guard now != before?.what, before != nil || state.associationCount < Self.maximumAssociations else {
                return
            }
            let serial = before?.serial ?? state.nextSerial()
            state.contexts[contextId]?.told[pair] = now.map { ($0, serial) }
            var changes = IoAssociationChanges()
            let association = IoAssociation(
                ioSourceId: pair.sourceId,
                ioActorId: pair.actorId,
                updateRate: now?.updateRate
            )
            switch (before?.what, now) {
            case (nil, _):
                state.associationCount += 1
                changes.added = [association]
            case (_, nil):
                state.associationCount -= 1
                changes.removed = [association]
            default: changes.changed = [association]
            }
            feed.tell(contextId, changes)
        }
    }

    private func remove(_ ids: [CoatyUUID]) {
        let gone = Set(ids)
        let removed = state.withLock { state in
            state.unconfirmed.subtract(gone)
            for id in gone { state.otherRouters[id] = nil }
            for (id, node) in state.nodes where gone.contains(id) || node.agent.map(gone.contains) ?? false {
                state.removeNode(id)
            }
            let removed = state.contexts.filter { gone.contains($0.key) || $0.value.router.map(gone.contains) ?? false }
            for (id, context) in removed {
                state.contexts[id] = nil
                state.byteCount -= context.json.retainedBytes
                state.associationCount -= context.told.count
                var changes = IoAssociationChanges()
                changes.removed = context.told.keys.map {
                    IoAssociation(ioSourceId: $0.sourceId, ioActorId: $0.actorId)
                }
                if !changes.isEmpty { feed.tell(id, changes) }
            }
            for id in state.contexts.keys { state.contexts[id]?.otherRouters.removeAll(where: gone.contains) }
            return removed
        }
        // The subscriptions end outside of the lock.
        withExtendedLifetime(removed) {}
    }
}
