import Coaty
import Coordination
import Logging
import Synchronization

/// The objects currently in the network: those that were advertised or discovered since the gateway joined.
///
/// An object is removed when it or its parent is deadvertised, and when the agent that advertised it leaves. If that agent
/// returns with the same identity, its objects return with it; see ``ObjectTable``. Log objects are not listed: they record
/// events, and no agent deadvertises them.
final class ObjectRegistry: Component {
    /// How many objects are known at most. See ``ObjectTable`` for what makes room.
    static let maximumObjects = 10_000
    /// How many bytes they have at most.
    static let maximumBytes = 64 << 20
    /// How many bytes an object may have; a larger one is left out.
    static let maximumObjectBytes = 1 << 20
    /// How long agents may take to show themselves after a reconnect; then they count as gone.
    static let confirmationTime = Duration.seconds(10)
    /// How often to ask at most.
    static let askInterval = Duration.seconds(1)
    /// The core types that objects are kept of.
    static let coreTypes = CoreType.allCases.filter { $0 != .Log }

    private struct Looking: Sendable {
        var observations: [Subscription] = []
        var request: PendingRequest?
        var task: Task<Void, Never>?
    }

    private let manager: CommunicationManager
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let table: Mutex<ObjectTable>
    private let looking = Mutex(Looking())
    private let asks: AsyncStream<Void>
    private let ask: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - manager: the gateway's own agent.
    ///   - maximumObjects: how many objects are known at most.
    ///   - maximumBytes: how many bytes they have at most.
    ///   - clock: measures the time that agents have to show themselves.
    init(
        manager: CommunicationManager,
        maximumObjects: Int = maximumObjects,
        maximumBytes: Int = maximumBytes,
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.manager = manager
        self.clock = clock
        self.logger = logger
        table = Mutex(ObjectTable(maximumObjects: maximumObjects, maximumBytes: maximumBytes))
        (asks, ask) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: - Reading

    /// Whether no object is missing. False, until the gateway is restarted, from the moment at which an object was removed
    /// for lack of room or ignored for its size, or at which an agent returned whose objects were forgotten.
    var isComplete: Bool { table.withLock(\.isComplete) }

    /// All objects, in the order in which they came.
    var objects: [AliveObject] {
        table.withLock { Array($0.objects) }.sorted { $0.position < $1.position }
    }

    func object(_ id: CoatyUUID) -> AliveObject? { table.withLock { $0.object(id) } }

    /// Returns the objects that are removed together with an id: its children, and the objects of the agent with this id.
    func dependents(of id: CoatyUUID) -> [AliveObject] { table.withLock { $0.dependents(of: id) } }

    /// Returns whether objects are removed together with an id.
    func hasDependents(_ id: CoatyUUID) -> Bool { table.withLock { $0.hasDependents(id) } }

    /// Returns the last known version of an object, also of one that has been removed lately, or nil if it is unknown; whether
    /// objects are removed together with the id; and ``isComplete``. All at one moment.
    func registered(_ id: CoatyUUID) -> (known: AliveObject?, hasDependents: Bool, isComplete: Bool) {
        table.withLock { ($0.known(id), $0.hasDependents(id), $0.isComplete) }
    }

    /// Returns the last known versions of objects, also of those that have been removed lately; nil for unknown ones.
    func known(_ ids: [CoatyUUID]) -> [AliveObject?] {
        table.withLock { table in ids.map { table.known($0) } }
    }

    /// The agents that are there, in the order in which they came, and behind them those that have gone.
    var agents: [AgentPresence] {
        let (identities, departed) = table.withLock { table in
            (table.objects.filter { $0.coreType == .Identity }, table.departed.agents)
        }
        return identities.sorted { $0.position < $1.position }
            .map { AgentPresence(identity: $0.bytes, isOnline: true, since: $0.since) } + departed
    }

    /// Lets somebody look at all objects, in the order in which they came, while no change happens: what the change handler
    /// is told is either in them or comes behind. It must not come back to the registry.
    func withObjects<Result: Sendable>(_ body: ([AliveObject]) -> Result) -> Result {
        table.withLock { table in body(table.objects.sorted { $0.position < $1.position }) }
    }

    /// Tells each change from now on, in their order, on the thread that brought it. The handler must not block, nor come
    /// back to the registry.
    ///
    /// - Returns: what ends it.
    func observeChanges(_ handler: @escaping @Sendable (ObjectChange) -> Void) -> @Sendable () -> Void {
        let id = table.withLock { table in table.addChangeHandler(handler) }
        return { [weak self] in _ = self?.table.withLock { $0.changeHandlers.removeValue(forKey: id) } }
    }

    // MARK: - Looking

    /// Observes what shows objects. To be called before the communication manager starts.
    func start() {
        var observations = Self.coreTypes.map { coreType in
            manager.subscribe(.advertise(withCoreType: coreType)) { [weak self] event in self?.take(event) }
        }
        observations.append(
            manager.subscribe(.deadvertise) { [weak self] event in
                let ids = event.data.objectIds
                self?.table.withLock { table in
                    if let agent = event.sourceId { table.hear(from: agent) }
                    table.deadvertise(ids, now: Self.now)
                }
            }
        )
        // Every agent observes these anyway.
        observations.append(
            manager.subscribe(.discover) { [weak self] event in
                guard let agent = event.sourceId else { return }
                self?.table.withLock { $0.hear(from: agent) }
            }
        )
        let (periods, asks) = (manager.onlinePeriods(), asks)
        let task = Task { [weak self] in
            await withTaskGroup { group in
                group.addTask { [weak self] in await self?.watch(periods) }
                group.addTask { [weak self] in
                    for await _ in asks {
                        self?.discover()
                        try? await Task.sleep(for: Self.askInterval)
                    }
                }
            }
        }
        looking.withLock { looking in
            looking.observations = observations
            looking.task = task
        }
    }

    func stop() {
        let ended = looking.withLock { looking in
            defer { looking = Looking() }
            return looking
        }
        ended.task?.cancel()
        // The observations end outside of the lock.
    }

    /// Takes the objects of an answer to somebody's request.
    func note(_ resolve: ResolveEvent) {
        guard let agent = resolve.sourceId else { return }
        let json = resolve.payload.json
        var objects = json["relatedObjects"].map { Array($0.elements) } ?? []
        if let object = json["object"] { objects.append(object) }
        let isBack = table.withLock { table in
            table.hear(from: agent)
            var isBack = false
            for object in objects where table.take(object, from: agent, isAdvertised: false, now: Self.now) {
                isBack = true
            }
            return isBack
        }
        if isBack { ask.yield() }
    }

    private func take(_ event: AdvertiseEvent) {
        guard let agent = event.sourceId, let object = event.payload.json["object"] else { return }
        let isBack = table.withLock { table in
            table.hear(from: agent)
            return table.take(object, from: agent, isAdvertised: true, now: Self.now)
        }
        // What it had advertised was taken for gone, and it need not advertise that again.
        if isBack { ask.yield() }
    }

    private func watch(_ periods: AsyncStream<Int>) async {
        var confirmation: Task<Void, Never>?
        for await period in periods {
            confirmation?.cancel()
            table.withLock { $0.doubt() }
            ask.yield()
            guard table.withLock(\.isInDoubt) else { continue }
            confirmation = Task { [weak self, clock] in
                guard (try? await clock.sleep(for: Self.confirmationTime)) != nil else { return }
                self?.removeUnconfirmed(period)
            }
        }
        confirmation?.cancel()
    }

    private func removeUnconfirmed(_ period: Int) {
        // If the connection was lost meanwhile, agents could not show themselves; the next period gives them time again.
        guard manager.onlinePeriod == period else { return }
        table.withLock { $0.removeUnconfirmed(now: Self.now) }
    }

    private func discover() {
        // The next online period asks.
        guard manager.isConnected else { return }
        do {
            let event = try DiscoverEvent.with(coreTypes: Self.coreTypes)
            let request = try manager.publish(event) { [weak self] resolve in self?.note(resolve) }
            let previous = looking.withLock { looking in
                defer { looking.request = request }
                return looking.request
            }
            previous?.cancel()
        } catch {
            logger.warning("objects could not be discovered", metadata: ["error": "\(error)"])
        }
    }

    /// Milliseconds since 1970.
    private static var now: Int { Int(CoatyTimestamp.nowMillis()) }
}
