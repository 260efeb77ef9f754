import Coaty
import OrderedCollections
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

    /// A context, and all that is known of it.
    struct Entry: Sendable {
        let json: JSONView
        let router: CoatyUUID?
        let otherRouters: [CoatyUUID]
        let nodes: [JSONView]
        let associations: [IoAssociation]
    }

    fileprivate struct Context {
        var json: JSONView
        let name: TopicLevel
        var router: CoatyUUID?
        var otherRouters: [CoatyUUID] = []
        var told: OrderedDictionary<Pair, Told> = [:]
        var associates: Subscription?
    }

    fileprivate struct Pair: Hashable {
        let sourceId: CoatyUUID
        let actorId: CoatyUUID
    }

    /// What a router has told of a pair.
    fileprivate struct Told: Equatable {
        let route: String
        let updateRate: Int?
    }

    fileprivate struct State {
        var contexts: OrderedDictionary<CoatyUUID, Context> = [:]
        var nodes: OrderedDictionary<CoatyUUID, (json: JSONView, agent: CoatyUUID?)> = [:]
        var associationCount = 0
        /// Of the texts of contexts and nodes.
        var byteCount = 0
        var observations: [Subscription] = []
        var request: Subscription?
    }

    private let manager: CommunicationManager
    /// Those that the gateway routes itself.
    private let hosted: Set<CoatyUUID>
    private let feed: RoutingFeed
    /// Called with a hosted context that another agent has, too.
    private let foundOtherRouter: @Sendable (_ contextId: CoatyUUID, _ router: CoatyUUID) -> Void
    private let state = Mutex(State())

    init(
        manager: CommunicationManager,
        hosted: Set<CoatyUUID>,
        feed: RoutingFeed,
        foundOtherRouter: @escaping @Sendable (_ contextId: CoatyUUID, _ router: CoatyUUID) -> Void
    ) {
        self.manager = manager
        self.hosted = hosted
        self.feed = feed
        self.foundOtherRouter = foundOtherRouter
    }

    /// All contexts, in the order in which they came.
    var entries: [Entry] {
        state.withLock { state in state.contexts.values.map { state.entry($0) } }
    }

    func entry(_ id: CoatyUUID) -> Entry? {
        state.withLock { state in state.contexts[id].map { state.entry($0) } }
    }

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
                group.addTask { for await state in states where state == .online { ask.yield() } }
                group.addTask { [weak self] in
                    for await _ in asks {
                        self?.ask()
                        try? await Task.sleep(for: Self.askInterval)
                    }
                }
            }
        }
    }

    private func ask() {
        guard let event = try? DiscoverEvent.with(coreTypes: [.IoContext, .IoNode]) else { return }
        // Offline there is nobody to ask; the next connection asks.
        let request = try? manager.publish(event) { [weak self] resolve in
            switch resolve.payload.json["object"]?["coreType"]?.string {
            case CoreType.IoContext.rawValue: self?.takeContext(resolve.payload, from: resolve.sourceId)
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

    private func takeContext(_ payload: Payload, from agent: CoatyUUID?) {
        guard agent != manager.identityId, let json = payload.json["object"], let id = json["objectId"]?.string,
            let name = json["name"]?.string, CommunicationTopic.isPublishableLevel(name)
        else { return }
        let contextId = CoatyUUID(wire: id)
        guard !hosted.contains(contextId) else {
            if let agent { foundOtherRouter(contextId, agent) }
            return
        }
        let level = TopicLevel(name)
        // Under another name it is another context.
        if let known = state.withLock({ $0.contexts[contextId]?.name }), known != level { remove([contextId]) }
        let isNew = state.withLock { state -> Bool in
            let known = state.contexts[contextId]?.json
            guard known != nil || state.contexts.count < Self.maximumContexts,
                state.makeRoom(for: json, insteadOf: known)
            else { return false }
            guard known != nil else {
                state.contexts[contextId] = Context(json: json, name: level, router: agent)
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
            let known = state.nodes[id]?.json
            if isGone {
                if let known { state.byteCount -= known.retainedBytes }
                state.nodes[id] = nil
            } else if known != nil || state.nodes.count < Self.maximumNodes, state.makeRoom(for: json, insteadOf: known)
            {
                state.nodes[id] = (json, agent)
            }
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
            guard now != before, before != nil || state.associationCount < Self.maximumAssociations else { return }
            state.contexts[contextId]?.told[pair] = now
            var changes = IoAssociationChanges()
            let association = IoAssociation(
                ioSourceId: pair.sourceId,
                ioActorId: pair.actorId,
                updateRate: now?.updateRate
            )
            switch (before, now) {
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
            for (id, node) in state.nodes where gone.contains(id) || node.agent.map(gone.contains) ?? false {
                state.nodes[id] = nil
                state.byteCount -= node.json.retainedBytes
            }
            let removed = state.contexts.filter { gone.contains($0.key) || $0.value.router.map(gone.contains) ?? false }
            for (id, context) in removed {
                state.contexts[id] = nil
                state.byteCount -= context.json.retainedBytes
                state.associationCount -= context.told.count
                var changes = IoAssociationChanges()
                changes.removed = context.associations.map {
                    IoAssociation(ioSourceId: $0.ioSourceId, ioActorId: $0.ioActorId)
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

extension ContextDirectory.Context {
    /// How many other routers of one context are told apart.
    private static var maximumRouters: Int { 100 }

    fileprivate mutating func note(_ other: CoatyUUID?) {
        guard let other, !otherRouters.contains(other), otherRouters.count < Self.maximumRouters else { return }
        otherRouters.append(other)
    }

    fileprivate var associations: [IoAssociation] {
        told.map {
            IoAssociation(ioSourceId: $0.key.sourceId, ioActorId: $0.key.actorId, updateRate: $0.value.updateRate)
        }
    }
}

extension ContextDirectory.State {
    /// - Returns: whether there is room for a text in the place of another one, which is counted then.
    fileprivate mutating func makeRoom(for new: JSONView, insteadOf old: JSONView?) -> Bool {
        let byteCount = byteCount + new.retainedBytes - (old?.retainedBytes ?? 0)
        guard byteCount <= ContextDirectory.maximumBytes else { return false }
        self.byteCount = byteCount
        return true
    }

    fileprivate func entry(_ context: ContextDirectory.Context) -> ContextDirectory.Entry {
        ContextDirectory.Entry(
            json: context.json,
            router: context.router,
            otherRouters: context.otherRouters.filter { $0 != context.router },
            nodes: nodes.values.map(\.json).filter { $0["name"]?.string.map(TopicLevel.init) == context.name },
            associations: context.associations
        )
    }
}
