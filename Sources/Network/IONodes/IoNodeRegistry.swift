package import Access
package import Base
package import Coaty
import Coordination
package import Logging
import Synchronization

/// The IO nodes that clients have registered, each for as long as its lease is renewed.
///
/// The ids of a node and its points are reserved from the start of its registration until it has left the network, so
/// that a Deadvertise event never affects a successor.
package final class IoNodeRegistry: Component {
    /// Maximum time that a registration waits for the broker.
    static let joinTimeout = Duration.seconds(5)
    /// Number of bodies of the maximum size that may be queued for the broker for one node.
    package static let waitingBodies = 4

    /// Calls a function after a delay, unless the returned object is released earlier. The function must not block.
    package typealias Timer = @Sendable (Duration, @escaping @Sendable () -> Void) -> any AnyObject & Sendable

    /// The reason why a node is not registered.
    package enum Refusal: Error, Equatable {
        /// An id is already used; the pointer is its place in the request.
        case conflict(pointer: String)
        case tooMany(limit: Int)
        case offline
        case stopped
    }

    fileprivate enum Phase {
        case joining
        case registered(Lease, timer: any AnyObject & Sendable)
        case leaving
    }

    fileprivate struct Entry {
        let node: LeasedIoNode
        /// The principal that registered the node.
        let owner: Principal
        /// The owner's reserved place, until the node has left.
        let place: Place?
        var phase = Phase.joining
        /// Distinguishes a renewed lease from the earlier one.
        var renewals = 0
        /// How often gateways of a cluster have taken the node over.
        let takeovers: Int
    }

    fileprivate enum Point {
        case source(LeasedIoSource)
        case actor(LeasedIoActor)
    }

    fileprivate struct State {
        /// By the object id of the node.
        var entries: [CoatyUUID: Entry] = [:]
        /// The ids of nodes, in the order of their registration.
        var order: [CoatyUUID] = []
        /// The nodes of all reserved ids: their own ids and those of their points.
        var owners: [CoatyUUID: CoatyUUID] = [:]
        var points: [CoatyUUID: Point] = [:]
        var isStopped = false
        /// Announces the nodes to the other gateways; nil if the gateway is in no cluster.
        let peers: PeerNodes?
    }

    /// The messages of the agents of all nodes, including removed ones.
    package var messageCounts: MessageCounts { options.messageCounts }

    private let options: CommunicationOptions
    private let name: String
    private let limit: Int
    private let farewells: LateFarewells?
    private let clock: any Clock<Duration>
    private let startTimer: Timer
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameters:
    ///   - options: the communication options of the nodes' agents.
    ///   - name: the name of an identity if the client sends none.
    ///   - limit: the maximum number of nodes.
    ///   - peers: the nodes at the other gateways; nil if the gateway is in no cluster.
    ///   - farewells: deadvertises nodes that leave while the broker can't be reached.
    ///   - clock: measures how long a registration waits.
    ///   - startTimer: measures the leases.
    package init(
        options: CommunicationOptions,
        name: String,
        limit: Int,
        peers: PeerNodes? = nil,
        farewells: LateFarewells? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        startTimer: @escaping Timer = { Deadline(after: $0, handler: $1) },
        logger: Logger
    ) {
        self.options = options
        self.name = name
        self.limit = limit
        state = Mutex(State(peers: peers))
        self.farewells = farewells
        self.clock = clock
        self.startTimer = startTimer
        self.logger = logger
    }

    func start() async {}

    /// Stops all nodes concurrently. The binding bounds the time that each of them takes.
    func stop() async {
        let nodes = state.withLock { state in
            state.isStopped = true
            for id in state.order { state.leave(id) }
            return state.entries.values.map(\.node)
        }
        await withTaskGroup { group in
            for node in nodes { group.addTask { await node.communicationManager.stop() } }
        }
    }

    // MARK: - Registration

    /// Creates the node of a request, without starting it.
    package func node(_ request: IoNodeRequest) throws -> LeasedIoNode {
        try LeasedIoNode(request, name: name, options: options, logger: logger)
    }

    /// Starts a node; its lease begins when it is advertised.
    package func register(
        _ node: LeasedIoNode,
        owner: Principal,
        place: Place? = nil,
        takeovers: Int = 0
    ) async throws(Refusal) -> Lease {
        let hasLeftBefore = try join(node, Entry(node: node, owner: owner, place: place, takeovers: takeovers))
        guard await node.communicationManager.hasJoined(within: Self.joinTimeout, by: clock) else {
            _ = state.withLock { $0.leave(node.objectId) }
            await remove(node, hasLeftBefore: hasLeftBefore)
            throw .offline
        }
        let lease = Lease(node.duration)
        let isRegistered = state.withLock { state in
            guard case .joining = state.entries[node.objectId]?.phase else { return false }
            state.entries[node.objectId]?.phase = .registered(lease, timer: timer(node, lease, renewals: 0))
            for source in node.sources { state.points[source.objectId] = .source(source) }
            for actor in node.actors { state.points[actor.objectId] = .actor(actor) }
            state.peers?.set(
                node.objectId,
                .init(
                    owner: owner.subject,
                    context: node.context,
                    registration: node.registration,
                    takeovers: takeovers
                )
            )
            return true
        }
        guard isRegistered else { throw .stopped }
        return lease
    }

    /// - Returns: whether an earlier node with this id has left, and is not yet deadvertised.
    private func join(_ node: LeasedIoNode, _ entry: Entry) throws(Refusal) -> Bool {
        try state.withLock { state throws(Refusal) in
            guard !state.isStopped else { throw .stopped }
            if let taken = node.ids.first(where: { state.owners[$0.id] != nil }) {
                throw .conflict(pointer: taken.pointer)
            }
            guard state.entries.count < limit else { throw .tooMany(limit: limit) }
            state.entries[node.objectId] = entry
            state.order.append(node.objectId)
            for (id, _) in node.ids { state.owners[id] = node.objectId }
            // Before the start, so that others don't get the Deadvertise event after the Advertise event of this node.
            let hasLeftBefore = farewells?.cancel(node.objectId) ?? false
            // Under the lock, so that a node that is stopped was started before. Starting does not block.
            node.communicationManager.start()
            return hasLeftBefore
        }
    }

    /// Renews the lease of a node.
    ///
    /// - Parameter duration: nil for the current duration.
    /// - Returns: nil if the node is no longer registered, even if another node has its id now.
    package func renew(_ node: LeasedIoNode, for duration: Duration?) -> Lease? {
        let nodeId = node.objectId
        return state.withLock { state in
            guard var entry = state.entries[nodeId], entry.node === node,
                case .registered(let old, _) = entry.phase
            else { return nil }
            let lease = Lease(duration ?? old.duration)
            entry.renewals += 1
            entry.phase = .registered(lease, timer: self.timer(entry.node, lease, renewals: entry.renewals))
            state.entries[nodeId] = entry
            return lease
        }
    }

    /// Stops a node, and returns when it has left the network.
    ///
    /// - Returns: false if the node is no longer registered, even if another node has its id now.
    package func withdraw(_ node: LeasedIoNode) async -> Bool {
        let isLeaving = state.withLock { state in
            state.registered(node.objectId)?.node === node && state.leave(node.objectId)
        }
        guard isLeaving else { return false }
        await remove(node)
        return true
    }

    /// Withdraws the nodes of principals that are no longer allowed to have them, concurrently, including nodes that
    /// are being registered.
    ///
    /// - Parameter mayStay: returns whether a node stays.
    package func withdraw(unless mayStay: (Owned) -> Bool) {
        let entries = state.withLock { Array($0.entries.values) }
        // Outside the lock, because conditions may take long.
        let unwanted = entries.filter {
            !mayStay(Owned(node: $0.node, lease: Lease($0.node.duration), owner: $0.owner))
        }
        let leaving = state.withLock { state in
            unwanted.filter { state.entries[$0.node.objectId]?.node === $0.node && state.leave($0.node.objectId) }.map(
                \.node
            )
        }
        for node in leaving { Task { await remove(node) } }
    }

    /// This is not a sleeping task: it would stay until its time even after cancellation, so that renewals would
    /// accumulate.
    private func timer(_ node: LeasedIoNode, _ lease: Lease, renewals: Int) -> any AnyObject & Sendable {
        startTimer(lease.duration) { [weak self] in
            guard let self else { return }
            Task { await self.expire(node, renewals: renewals) }
        }
    }

    private func expire(_ node: LeasedIoNode, renewals: Int) async {
        let isExpired = state.withLock { state in
            // A timer that was cancelled too late must not end a renewed lease.
            state.entries[node.objectId]?.node === node && state.entries[node.objectId]?.renewals == renewals
                && state.leave(node.objectId)
        }
        guard isExpired else { return }
        logger.info("the lease of an IO node has run out", metadata: ["node": "\(node.objectId)"])
        await remove(node)
    }

    /// Releases the ids of a node after it has left.
    ///
    /// - Parameter hasLeftBefore: the result of ``join(_:_:)`` if the node was not announced.
    private func remove(_ node: LeasedIoNode, hasLeftBefore: Bool = false) async {
        await node.communicationManager.stop()
        if let farewells {
            var undelivered = node.communicationManager.takeUndelivered()
            if hasLeftBefore, !undelivered.contains(node.objectId) { undelivered.append(node.objectId) }
            // Before the ids are released to a successor, which cancels the event.
            farewells.publish(undelivered, holding: state.withLock { $0.entries[node.objectId]?.place })
        }
        let removed = state.withLock { state in
            state.order.removeAll { $0 == node.objectId }
            for (id, _) in node.ids { state.owners[id] = nil }
            return state.entries.removeValue(forKey: node.objectId)
        }
        withExtendedLifetime(removed) {}
    }

    // MARK: - Lookup

    /// Returns a registered node.
    package func registered(_ nodeId: CoatyUUID) -> Owned? { state.withLock { $0.registered(nodeId) } }

    /// Returns the registered node of an IO point.
    package func owned(ofPoint id: CoatyUUID) -> Owned? {
        state.withLock { state in
            guard state.points[id] != nil, let node = state.owners[id] else { return nil }
            return state.registered(node)
        }
    }

    /// Returns the principal that registered the node with this id or with a point of this id. Known from the start of
    /// the registration until the node has left the network.
    func owner(ofId id: CoatyUUID) -> Principal.Subject? {
        state.withLock { state in state.owners[id].flatMap { state.entries[$0]?.owner.subject } }
    }

    /// All registered nodes, in the order of their registration.
    package var all: [Owned] {
        state.withLock { state in state.order.compactMap { state.registered($0) } }
    }

    package func source(_ id: CoatyUUID) -> LeasedIoSource? {
        if case .source(let source) = state.withLock({ $0.points[id] }) { source } else { nil }
    }

    package func actor(_ id: CoatyUUID) -> LeasedIoActor? {
        if case .actor(let actor) = state.withLock({ $0.points[id] }) { actor } else { nil }
    }

    /// Returns the agent of a registered point.
    package func agent(ofPoint id: CoatyUUID) -> CommunicationManager? {
        state.withLock { state in
            guard state.points[id] != nil, let owner = state.owners[id] else { return nil }
            return state.entries[owner]?.node.communicationManager
        }
    }
}

extension IoNodeRegistry.State {
    fileprivate func registered(_ nodeId: CoatyUUID) -> IoNodeRegistry.Owned? {
        guard let entry = entries[nodeId], case .registered(let lease, _) = entry.phase else { return nil }
        return .init(node: entry.node, lease: lease, owner: entry.owner)
    }

    /// Hides a node and its points.
    ///
    /// - Returns: false if it is not registered, or already leaving.
    @discardableResult
    fileprivate mutating func leave(_ nodeId: CoatyUUID) -> Bool {
        guard let entry = entries[nodeId] else { return false }
        switch entry.phase {
        case .joining, .registered: break
        case .leaving: return false
        }
        entries[nodeId]?.phase = .leaving
        if !isStopped { peers?.set(nodeId, nil) }
        for (id, _) in entry.node.ids { points[id] = nil }
        return true
    }
}

extension IoNodeRegistry {
    /// A registered IO node with its lease and its owner, at the time of the lookup.
    package struct Owned: Sendable {
        package let node: LeasedIoNode
        package let lease: Lease
        package let owner: Principal

        package func request(_ verb: Verb, _ pattern: AccessPattern, by subject: Principal.Subject) -> AccessRequest {
            AccessRequest(
                verb: verb,
                pattern: pattern,
                target: .context(WireName(node.context)),
                objectText: node.json,
                isOfOthers: owner.subject != subject
            )
        }
    }
}
