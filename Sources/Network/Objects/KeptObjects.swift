package import Access
package import Base
package import Coaty
import Coordination
package import Logging
import ProblemDetails
import Synchronization

/// The objects that clients have advertised: their agents advertise them again after each reconnect, until they are
/// withdrawn, replaced, or their lifetimes end.
///
/// The agents' sessions store the objects. This type bounds them, ends their lifetimes, and notices when others
/// deadvertise or replace them. Log objects and snapshots are only kept if they have a lifetime, because they report
/// past events.
///
/// Lock order: this, then sessions, ``ConnectionLifetime``, ``ObjectOwners``, ``PeerObjects`` and accounts.
package final class KeptObjects: Component {
    /// The memory of a kept object in addition to its payload, including its topics, in bytes.
    static let cost = 1024
    /// Maximum number of ids in a Deadvertise event of the gateway.
    private static let idsPerEvent = 256
    /// Time until another attempt if the outbox has no room for a Deadvertise event.
    private static let retryInterval = Duration.seconds(1)

    /// The client that has advertised an object.
    package struct Owner: Sendable {
        let principal: Principal
        let account: ClientAccount

        package init(principal: Principal, account: ClientAccount) {
            self.principal = principal
            self.account = account
        }
    }

    let manager: CommunicationManager
    let owners: ObjectOwners
    private let limits: Limits
    let logger: Logger
    private let peers: PeerObjects?
    let state: Mutex<State>

    /// - Parameters:
    ///   - manager: the gateway's own agent, which observes the network.
    ///   - owners: the owners of objects, which own them no longer when their lifetimes end.
    ///   - peers: the objects at the other gateways; nil if the gateway is in no cluster.
    package init(
        manager: CommunicationManager,
        owners: ObjectOwners,
        peers: PeerObjects? = nil,
        limits: Limits,
        logger: Logger
    ) {
        self.peers = peers
        state = Mutex(State(peers: peers))
        self.manager = manager
        self.owners = owners
        self.limits = limits
        self.logger = logger
    }

    /// Observes other agents. Call it before the communication manager starts.
    func start() {
        var observations = ObjectRegistry.coreTypes.map { coreType in
            manager.subscribe(.advertise(withCoreType: coreType)) { [weak self] event in self?.noteReplaced(event) }
        }
        observations.append(manager.subscribe(.deadvertise) { [weak self] event in self?.noteDeadvertised(event) })
        state.withLock { $0.observations = observations }
    }

    func stop() {
        let ended = state.withLock { state in
            defer {
                state = State()
                state.isStopped = true
            }
            return state
        }
        withExtendedLifetime(ended) {}
    }

    // MARK: - Publishing

    /// Advertises an object of a client, and keeps it.
    ///
    /// - Parameters:
    ///   - lifetime: nil until it is withdrawn.
    ///   - manager: the agent that publishes.
    ///   - holding: released when the event is written or given up.
    /// - Throws: `Problem` if there is no room for an object with a lifetime; `CommunicationError`.
    package func advertise(
        _ event: AdvertiseEvent,
        _ lifetime: ObjectLifetime?,
        from manager: CommunicationManager,
        by owner: Owner,
        holding: Place
    ) throws -> PublishOutcome {
        let header = event.header
        let isTransient = header.coreType == .Log || header.coreType == .Snapshot
        let isWanted = lifetime != nil || !isTransient || manager.keeps(header)
        return try state.withLock { state in
            var room: Room?
            if isWanted {
                do throws(Problem) {
                    room = try self.room(for: event, of: owner.account, state)
                } catch {
                    if lifetime != nil { throw error }
                }
            }
            let delivery = try manager.publishAdvertise(event, holding: holding, keeping: room)
            if let room {
                insert(header.objectId, room, manager, owner.principal, lifetime, &state)
            } else if let former = state.entries.removeValue(forKey: header.objectId) {
                former.replaced(header.objectId, by: manager)
            }
            return PublishOutcome(delivery: delivery, hasRoom: room != nil || !isWanted)
        }
    }

    /// Returns the room of an earlier version of an object with the new size, or new room.
    private func room(for event: AdvertiseEvent, of account: ClientAccount, _ state: State) throws(Problem) -> Room {
        let bytes = max(limits.bytesPerKeptObject, event.payload.bytes.count + Self.cost)
        guard let room = state.entries[event.header.objectId]?.room, room.account === account else {
            return try Room(bytes, of: account)
        }
        if let reason = room.place.resize(to: bytes) {
            account.countRefusal(.resource(.keptObjects), reason)
            throw Problems.exhausted(.keptObjects, reason)
        }
        return room
    }

    private func insert(
        _ id: CoatyUUID,
        _ room: Room,
        _ manager: CommunicationManager,
        _ owner: Principal,
        _ lifetime: ObjectLifetime?,
        _ state: inout State
    ) {
        state.lastNumber += 1
        var entry = Entry(room: room, manager: manager, owner: owner, number: state.lastNumber)
        switch lifetime {
        case .duration(let duration): entry.end = .timer(timer(duration, id, state.lastNumber))
        case .connection(let connection): entry.end = .connection(connection)
        case nil: break
        }
        let former = state.entries.updateValue(entry, forKey: id)
        former?.replaced(id, by: manager)
        if former?.manager !== manager { state.managers[manager.identityId] = WeakManager(manager: manager) }
        if state.entries.count >= state.sweep { state.removeUnkept() }
        if let peers { announce(id, manager, owner.subject, lifetime, peers) }
        guard case .connection(let connection) = lifetime else { return }
        let isOpen = connection.insert(id) { [weak self, weak connection] ids in
            guard let connection else { return }
            self?.end(ids, of: connection)
        }
        if !isOpen { withdraw([id], &state) }
    }

    /// Deadvertises objects for a client.
    package func deadvertise(
        _ event: DeadvertiseEvent,
        from manager: CommunicationManager,
        holding: Place
    ) throws -> Delivery {
        try state.withLock { state in
            let delivery = try manager.publishDeadvertise(event, holding: holding)
            state.forget(deadvertised: event.data.objectIds, by: manager.identityId)
            return delivery
        }
    }

    // MARK: - Ends of lifetimes

    private func timer(_ duration: Duration, _ id: CoatyUUID, _ number: UInt64) -> Deadline {
        Deadline(after: duration) { [weak self] in self?.expire(id, number) }
    }

    private func expire(_ id: CoatyUUID, _ number: UInt64) {
        state.withLock { state in
            // The object may have been advertised again meanwhile.
            guard state.entries[id]?.number == number else { return }
            withdraw([id], &state)
        }
    }

    private func end(_ ids: [CoatyUUID], of connection: ConnectionLifetime) {
        state.withLock { state in
            withdraw(ids.filter { state.entries[$0]?.end?.openConnection === connection }, &state)
        }
    }

    /// Withdraws the objects of principals that are no longer allowed to have them.
    ///
    /// - Parameter mayStay: returns whether the objects of a principal stay. Must not block.
    package func withdraw(unless mayStay: (Principal) -> Bool) {
        let owned = state.withLock { state in state.entries.filter { $0.value.isKept }.mapValues(\.owner) }
        // Outside the lock, because conditions may take long.
        let unwanted = owned.filter { !mayStay($0.value) }
        guard !unwanted.isEmpty else { return }
        state.withLock { state in
            withdraw(unwanted.filter { state.entries[$0.key]?.owner === $0.value }.map(\.key), &state)
        }
    }

    /// Deadvertises objects that are still kept.
    private func withdraw(_ ids: [CoatyUUID], _ state: inout State) {
        var idsByManager: [CoatyUUID: (manager: CommunicationManager, ids: [CoatyUUID])] = [:]
        for id in ids {
            guard let entry = state.entries[id] else { continue }
            guard let manager = entry.manager, entry.isKept else {
                state.remove(id)
                continue
            }
            idsByManager[manager.identityId, default: (manager, [])].ids.append(id)
        }
        for (manager, ids) in idsByManager.values {
            for start in stride(from: 0, to: ids.count, by: Self.idsPerEvent) {
                withdraw(Array(ids[start..<min(start + Self.idsPerEvent, ids.count)]), manager, &state)
            }
        }
    }

    private func withdraw(_ ids: [CoatyUUID], _ manager: CommunicationManager, _ state: inout State) {
        do {
            try manager.publishDeadvertise(.with(objectIds: ids))
            for id in ids { state.remove(id) }
            owners.remove(ids)
        } catch {
            logger.debug("an object is deadvertised later", metadata: ["error": "\(error)"])
            for id in ids {
                guard let number = state.entries[id]?.number else { continue }
                state.entries[id]?.ignoreConnection(id)
                state.entries[id]?.end = .timer(timer(Self.retryInterval, id, number))
            }
        }
    }

    // MARK: - Other agents

    private func noteReplaced(_ event: AdvertiseEvent) {
        guard let source = event.sourceId, source != manager.identityId else { return }
        let id = event.header.objectId
        let isPeer = peers?.isGateway(source) ?? false
        if isPeer, let peers, peers.isOutdated(id, from: source) { return correct(id) }
        state.withLock { state in
            guard let keeper = state.entries[id]?.manager, keeper.identityId != source else { return }
            keeper.forget(replaced: id)
            state.remove(id)
            if isPeer { owners.remove([id]) }
        }
    }

    private func noteDeadvertised(_ event: DeadvertiseEvent) {
        guard let source = event.sourceId, source != manager.identityId else { return }
        state.withLock { $0.forget(deadvertised: event.data.objectIds, by: source) }
        if peers?.isGateway(source) ?? false { owners.remove(event.data.objectIds) }
    }
}
