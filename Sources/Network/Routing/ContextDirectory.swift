import Access
import Base
import Coaty
import Synchronization

/// The IO contexts that other agents route: the contexts that were advertised or discovered, their nodes, and the
/// associations that were published since the gateway joined.
///
/// ``Router`` describes which agents count as routers. A context is listed as long as it has a router, or associations
/// that a lost router left.
final class ContextDirectory: Sendable {
    /// Maximum number of sources and actors, and of associations, for each IO node that may be listed.
    static let pointsPerNode = 10
    /// Maximum number of other routers of hosted contexts.
    static let maximumOtherRouters = 100
    /// Maximum number of agents that are remembered because they have routed a context. When it is reached, associations
    /// of routers that appear are considered incomplete.
    static let maximumFormerRouters = 10_000
    /// Minimum time between two Discover events.
    static let askInterval = Duration.seconds(1)
    /// Maximum time for contexts and nodes to be advertised or discovered after the gateway reconnects, and for a lost
    /// router to return.
    static let confirmationTime = Duration.seconds(10)

    /// A context with its state.
    struct Entry: Sendable {
        let json: JSONView
        /// The router that sent the context most recently; nil if none is present.
        let router: CoatyUUID?
        let otherRouters: [CoatyUUID]
        let nodes: [JSONView]
        let associations: [IoAssociation]
        /// False if associations may be missing, because the gateway was offline when they were published, or had no room.
        let isComplete: Bool
    }

    private let manager: CommunicationManager
    /// The contexts that the gateway routes.
    private let hosted: Set<CoatyUUID>
    private let feed: RoutingFeed
    private let clock: any Clock<Duration>
    /// The time since the directory was created.
    private let now: @Sendable () -> Duration
    private let foundOtherRouter: @Sendable (_ contextId: CoatyUUID, _ router: CoatyUUID) -> Void
    private let state: Mutex<State>

    /// - Parameter foundOtherRouter: called once for each agent that answers with a hosted context as its router.
    init(
        manager: CommunicationManager,
        hosted: Set<CoatyUUID>,
        feed: RoutingFeed,
        clock: any Clock<Duration> = ContinuousClock(),
        limits: Limits = Limits(),
        foundOtherRouter: @escaping @Sendable (_ contextId: CoatyUUID, _ router: CoatyUUID) -> Void
    ) {
        state = Mutex(State(limits))
        self.manager = manager
        self.hosted = hosted
        self.feed = feed
        self.clock = clock
        now = Self.stopwatch(clock)
        self.foundOtherRouter = foundOtherRouter
    }

    private static func stopwatch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }

    /// Changes the state, and performs the effects.
    private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, ended) = state.withLock { state in
            let result = body(&state)
            // Under the lock, so that watchers receive changes in order; they only queue them.
            for (id, changes) in state.effects.changes { feed.report(id, changes) }
            defer { state.effects = Effects() }
            return (result, state.effects.ended)
        }
        withExtendedLifetime(ended) {}
        return result
    }

    // MARK: - Lookup

    /// All contexts in the order of their arrival.
    var entries: [Entry] {
        let found = state.withLock { state in
            state.contexts.values.map { (context: $0, nodes: state.nodes.nodes(of: $0.name)) }
        }
        return found.sorted { $0.context.serial < $1.context.serial }.map { Entry($0.context, $0.nodes) }
    }

    /// Returns a context; nil if it is unknown.
    func entry(_ id: CoatyUUID) -> Entry? {
        let found = state.withLock { state in state.contexts[id].map { ($0, state.nodes.nodes(of: $0.name)) } }
        return found.map { Entry($0.0, $0.1) }
    }

    /// Returns whether a context is known.
    func contains(_ id: CoatyUUID) -> Bool { state.withLock { $0.contexts[id] != nil } }

    /// Returns the JSON text of a context; nil if it is unknown.
    func json(_ id: CoatyUUID) -> JSONView? { state.withLock { $0.contexts[id]?.json } }

    /// Passes the current associations of a context to a handler, followed by each change.
    ///
    /// - Returns: a function that ends this; nil if the context is unknown.
    func watch(_ id: CoatyUUID, _ handler: @escaping RoutingFeed.Handler) -> (@Sendable () -> Void)? {
        // Under the lock, so that no change comes in between; a handler only queues.
        state.withLock { state in
            state.contexts[id].map { feed.watch(id, from: $0.listedAssociations, handler) }
        }
    }

    /// Processes the Complete event for an Update of a context: not every router advertises the result.
    func takeCompleted(_ event: CompleteEvent) {
        guard let agent = event.sourceId else { return }
        show(event.payload, by: agent, .completed)
    }

    // MARK: - Observation

    /// Starts to observe the events that concern contexts. Call it before the communication manager starts.
    ///
    /// - Returns: the task that requests contexts and nodes; it ends when it is cancelled.
    func start() -> Task<Void, Never> {
        let (asks, ask) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let (deadlines, deadline) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observations = [
            manager.subscribe(.advertise(withCoreType: .IoContext)) { [weak self] event in
                if let agent = event.sourceId { self?.show(event.payload, by: agent, .advertised) }
            },
            manager.subscribe(.advertise(withCoreType: .IoNode)) { [weak self] event in
                self?.showNode(event.payload, by: event.sourceId)
            },
            // Some existing agents advertise only one of their IO nodes when they join.
            manager.subscribe(.advertise(withCoreType: .Identity)) { _ in ask.yield() },
            manager.subscribe(.deadvertise) { [weak self] event in
                if self?.deadvertise(event) ?? false { ask.yield() }
                deadline.yield()
            },
        ]
        state.withLock { $0.observations = observations }
        let periods = manager.onlinePeriods()
        return Task { [weak self] in
            await withTaskGroup { group in
                group.addTask { [weak self] in
                    for await _ in periods {
                        self?.requireConfirmation()
                        ask.yield()
                        deadline.yield()
                    }
                }
                group.addTask { [weak self] in
                    for await _ in asks {
                        self?.ask()
                        try? await Task.sleep(for: Self.askInterval)
                    }
                }
                group.addTask { [weak self] in
                    for await _ in deadlines { await self?.expire() }
                }
            }
        }
    }

    private func deadvertise(_ event: DeadvertiseEvent) -> Bool {
        // A fast path, because few networks use IO routing.
        guard !state.withLock(\.isEmpty) else { return false }
        let ids = Set(
            event.data.objectIds(among: state.withLock(\.knownCount)) {
                NameFilter(state.withLock(\.knownIds).lazy.map(\.string))
            }
        )
        let deadline = now() + Self.confirmationTime
        return change { $0.deadvertise(ids, by: event.sourceId, until: deadline) }
    }

    private func requireConfirmation() {
        let deadline = now() + Self.confirmationTime
        change { $0.requireConfirmation(until: deadline) }
    }

    /// Waits for all deadlines, and ends unconfirmed routers, nodes and associations.
    private func expire() async {
        while let deadline = state.withLock(\.nextDeadline) {
            guard (try? await clock.sleep(for: deadline - now())) != nil else { return }
            // While the gateway is offline, nothing can be confirmed; the next connection sets new deadlines.
            guard manager.isOnline else { return }
            let now = now()
            change { $0.expire(at: now) }
        }
    }

    private func ask() {
        // The next online period sends the request.
        guard manager.isConnected, let event = try? DiscoverEvent.with(coreTypes: [.IoContext, .IoNode]) else { return }
        let request = try? manager.publish(event) { [weak self] resolve in
            switch resolve.payload.json["object"]?["coreType"]?.string {
            case CoreType.IoContext.rawValue:
                if let agent = resolve.sourceId { self?.show(resolve.payload, by: agent, .resolved) }
            case CoreType.IoNode.rawValue: self?.showNode(resolve.payload, by: resolve.sourceId)
            default: break
            }
        }
        let former = state.withLock { state in
            let former = state.request
            state.request = request
            return former
        }
        withExtendedLifetime(former) {}
    }

    // MARK: - Events

    private func show(_ payload: Payload, by agent: CoatyUUID, _ showing: Showing) {
        guard agent != manager.identityId, let json = payload.json["object"],
            let id = json["objectId"]?.string.map(CoatyUUID.init(wire:)),
            let name = json["name"]?.string, WireName.isPublishable(name)
        else { return }
        guard !hosted.contains(id) else {
            // The hosted context's own router observes the Advertise events.
            guard showing == .resolved, showing.isByRouter(agent, json) else { return }
            if change({ $0.noteOtherRouter(agent, of: id) }) { foundOtherRouter(id, agent) }
            return
        }
        let now = now()
        let isNew = change { $0.show(id, json, name: WireName(name), by: agent, showing, at: now) }
        guard isNew, let observation = try? EventObservation<AssociateEvent>.associate(ioContextName: name) else {
            return
        }
        let subscription = manager.subscribe(observation) { [weak self] in self?.associate($0, in: id) }
        change { $0.observe(id, by: subscription) }
    }

    private func showNode(_ payload: Payload, by agent: CoatyUUID?) {
        guard let json = payload.json["object"], let id = json["objectId"]?.string else { return }
        change { $0.show(node: json, CoatyUUID(wire: id), by: agent) }
    }

    private func associate(_ event: AssociateEvent, in id: CoatyUUID) {
        // A hosted context with the same name is listed separately.
        guard let agent = event.sourceId, agent != manager.identityId else { return }
        change { $0.associate(event, by: agent, in: id) }
    }
}

extension ContextDirectory.Entry {
    fileprivate init(_ context: ContextDirectory.Context, _ nodes: [ContextDirectory.Node]) {
        let routers = context.listedRouters
        json = context.json
        router = routers.last
        otherRouters = routers.dropLast()
        self.nodes = nodes.sorted { $0.serial < $1.serial }.map(\.json)
        associations = context.listedAssociations
        isComplete = context.isComplete
    }
}
