package import Base
package import Coaty
import Coordination
package import Logging
import Synchronization

/// The objects currently in the network: those that were advertised or discovered since the gateway joined.
///
/// An object is removed when it or its parent is deadvertised, and when the agent that advertised it leaves. If that
/// agent returns with the same identity, its objects return with it; see ``ObjectTable``. Log objects are not listed:
/// they record events, and no agent deadvertises them.
///
/// The will of an agent is not published if its broker node fails together with it, or while the gateway is not
/// connected. The registry therefore asks after each reconnect and at intervals, and removes the agents of which it
/// receives no Advertise, Deadvertise, Discover or Resolve event.
package final class ObjectRegistry: Component {
    /// Maximum time for agents to show themselves after a reconnect, or to answer a check; then they count as departed.
    static let confirmationTime = Duration.seconds(10)
    /// Maximum time for the gateway's own agent to answer a check.
    static let ownAnswerTime = Duration.seconds(5)
    /// Number of ids of a Deadvertise event that are removed before other threads can read.
    private static let idsPerLock = 256
    /// Minimum interval between requests.
    static let askInterval = Duration.seconds(1)
    /// The core types of listed objects.
    package static let coreTypes = CoreType.allCases.filter { $0 != .Log }

    private struct Looking: Sendable {
        var observations: [Subscription] = []
        var request: PendingRequest?
        var task: Task<Void, Never>?
        /// The number of times that events may have been missed although the connection was up.
        var gaps = 0
    }

    private let manager: CommunicationManager
    private let checkInterval: Duration
    private let clock: any Clock<Duration>
    private let logger: Logger
    /// Maximum size of an object, in bytes; a larger one is not listed.
    private let maximumSize: Int
    private let table: Mutex<ObjectTable>
    private let looking = Mutex(Looking())
    private let asks: AsyncStream<Void>
    private let ask: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - manager: the gateway's own agent.
    ///   - limits: the limits of the objects. See ``ObjectTable`` for the objects that are removed at the limits.
    ///   - checkInterval: the interval of the checks whether agents are still in the network; zero for no checks.
    ///   - clock: measures ``confirmationTime`` and the interval.
    package init(
        manager: CommunicationManager,
        limits: Limits = Limits(),
        checkInterval: Duration = .zero,
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.manager = manager
        self.checkInterval = checkInterval
        self.clock = clock
        self.logger = logger
        maximumSize = limits.objectSize
        table = Mutex(
            ObjectTable(
                maximumObjects: limits.registryObjects,
                maximumBytes: limits.registryBytes,
                maximumDeparted: limits.departedAgents
            )
        )
        (asks, ask) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: - Reading

    /// The current content. Takes constant time.
    package var content: RegisteredObjects { table.withLock(\.content) }

    /// Whether no object is missing. It becomes false, until the gateway is restarted, when an object is removed for
    /// lack of room or ignored because of its size, or when an agent returns whose objects were discarded.
    var isComplete: Bool { content.isComplete }

    package func object(_ id: CoatyUUID) -> AliveObject? { content.object(id) }

    /// Returns the objects that are removed together with an id: its children, and the objects of the agent with this
    /// id.
    package func dependents(of id: CoatyUUID) -> [AliveObject] { content.dependents(of: id) }

    /// Returns whether objects are removed together with an id.
    package func hasDependents(_ id: CoatyUUID) -> Bool { content.hasDependents(id) }

    /// Returns the last known version of an object, even if it was removed recently, or nil if it is unknown; whether
    /// objects are removed together with the id; and ``isComplete``. All values are of the same moment.
    package func registered(_ id: CoatyUUID) -> (known: AliveObject?, hasDependents: Bool, isComplete: Bool) {
        let content = content
        return (content.known(id), content.hasDependents(id), content.isComplete)
    }

    /// Returns the last known versions of the objects of an event, including recently removed ones.
    package func known(_ data: DeadvertiseEventData) -> [AliveObject] {
        let content = content
        return content.ids(in: data).compactMap(content.known)
    }

    /// Passes the objects to a function while no change happens: a change is either included, or the change handler is
    /// called with it later. The function must not block, search the objects, or call the registry.
    package func withContent<Result: Sendable>(_ body: (RegisteredObjects) -> Result) -> Result {
        table.withLock { body($0.content) }
    }

    /// Calls a handler with each change from now on, in order, on the thread of the event. The handler must not block
    /// or call the registry.
    ///
    /// - Returns: a function that ends the observation.
    package func observeChanges(_ handler: @escaping @Sendable (ObjectChange) -> Void) -> @Sendable () -> Void {
        let id = table.withLock { table in table.addChangeHandler(handler) }
        return { [weak self] in _ = self?.table.withLock { $0.changeHandlers.removeValue(forKey: id) } }
    }

    // MARK: - Observing

    /// Observes the events that contain objects. Call it before the communication manager starts.
    func start() {
        // Objects may have been missed. Their agents resolve them again.
        let onGap: @Sendable (GapReason) -> Void = { [weak self, ask] reason in
            // Asking again would not make an event valid.
            guard reason == .missed else { return }
            self?.looking.withLock { $0.gaps += 1 }
            ask.yield()
        }
        var observations = Self.coreTypes.map { coreType in
            manager.subscribe(.advertise(withCoreType: coreType), onGap: onGap) { [weak self] event in
                self?.take(event)
            }
        }
        observations.append(
            manager.subscribe(.deadvertise, onGap: onGap) { [weak self] event in
                self?.deadvertise(event)
            }
        )
        // Every agent observes these events anyway.
        observations.append(
            manager.subscribe(.discover) { [weak self] event in
                guard let agent = event.sourceId else { return }
                self?.table.withLock { $0.confirm(agent) }
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
        // The observations end outside the lock.
    }

    /// Adds the objects of an answer to a request of another agent.
    package func note(_ resolve: ResolveEvent) {
        guard let agent = resolve.sourceId else { return }
        let json = resolve.payload.json
        var objects = json["relatedObjects"].map { Array($0.elements) } ?? []
        if let object = json["object"] { objects.append(object) }
        table.withLock { $0.confirm(agent) }
        var isBack = false
        // One at a time, so that other threads need not wait for all of them.
        for version in objects.lazy.compactMap(ObjectHeader.init).compactMap(version) {
            if take(version, from: agent, isAdvertised: false) { isBack = true }
        }
        if isBack { ask.yield() }
    }

    private func deadvertise(_ event: DeadvertiseEvent) {
        let (content, unconfirmed) = table.withLock { table in
            if let agent = event.sourceId { table.confirm(agent) }
            return (table.content, table.unconfirmed)
        }
        let ids = content.ids(in: event.data, or: unconfirmed)
        for start in stride(from: 0, to: ids.count, by: Self.idsPerLock) {
            let some = ids[start..<min(start + Self.idsPerLock, ids.count)]
            table.withLock { $0.deadvertise(some, now: Self.now) }
        }
    }

    private func take(_ version: ObjectVersion, from agent: CoatyUUID, isAdvertised: Bool) -> Bool {
        table.withLock { $0.take(version, from: agent, isAdvertised: isAdvertised, now: Self.now) }
    }

    private func version(_ object: ObjectHeader) -> ObjectVersion? { ObjectVersion(object, maximumSize: maximumSize) }

    private func take(_ event: AdvertiseEvent) {
        guard let agent = event.sourceId else { return }
        table.withLock { $0.confirm(agent) }
        guard let version = version(event.header) else { return }
        // The agent was presumed to have left, so its objects were removed, and it need not advertise them again.
        if take(version, from: agent, isAdvertised: true) { ask.yield() }
    }

    // MARK: - Departed agents

    private func watch(_ periods: AsyncStream<Int>) async {
        var departures: Task<Void, Never>?
        for await period in periods {
            departures?.cancel()
            await departures?.value
            markUnconfirmed(\.owners)
            ask.yield()
            departures = Task { [weak self] in try? await self?.removeDeparted(in: period) }
        }
        departures?.cancel()
    }

    /// Removes the agents that have left while the gateway was not connected, and later those that do not answer checks.
    private func removeDeparted(in period: Int) async throws {
        if table.withLock(\.hasUnconfirmed) {
            try await clock.sleep(for: Self.confirmationTime)
            removeUnconfirmed(period)
        }
        guard checkInterval > .zero else { return }
        while true {
            // An agent that is heard before the check need not answer, because some agents only publish.
            let gaps = looking.withLock(\.gaps)
            markUnconfirmed { Set($0.presences) }
            try await clock.sleep(for: checkInterval)
            guard table.withLock(\.hasUnconfirmed), try await check() else { continue }
            if looking.withLock(\.gaps) == gaps { removeUnconfirmed(period) }
        }
    }

    /// Marks agents that may have left without notice, which the gateway's own agent can't.
    private func markUnconfirmed(_ agents: (ObjectIndex) -> Set<CoatyUUID>) {
        table.withLock { $0.markUnconfirmed(agents($0.content.listed).subtracting([manager.identityId])) }
    }

    private func removeUnconfirmed(_ period: Int) {
        // If the connection was lost meanwhile, agents could not answer; the next period gives them time again.
        guard manager.onlinePeriod == period else { return }
        table.withLock { $0.removeUnconfirmed(now: Self.now) }
    }

    /// Asks all agents for their identities, and gives them time to answer.
    ///
    /// The gateway's own agent answers over the broker, like the others. Their time begins with its answer and ends with
    /// its answer to a second request: it is not over while the broker is frozen, or while the gateway has not read what
    /// has arrived.
    ///
    /// - Returns: false if answers may be missing.
    private func check() async throws -> Bool {
        guard let request = await answered(try .with(coreTypes: [.Identity])) else { return false }
        defer { request.cancel() }
        try await clock.sleep(for: Self.confirmationTime)
        guard let last = await answered(try .with(objectId: manager.identityId)) else { return false }
        last.cancel()
        return true
    }

    /// Sends a request, and waits until the gateway's own agent has answered it.
    ///
    /// - Returns: the request, which collects further answers; nil if there is no answer in time.
    private func answered(_ event: @autoclosure () throws -> DiscoverEvent) async -> PendingRequest? {
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let request = publish(try event()) { [gateway = manager.identityId] agent in
            if agent == gateway { answer.yield() }
        }
        guard let request else { return nil }
        let limit = Task { [clock] in
            try? await clock.sleep(for: Self.ownAnswerTime)
            answer.finish()
        }
        defer { limit.cancel() }
        for await _ in answers { return request }
        request.cancel()
        return nil
    }

    // MARK: - Requests

    private func discover() {
        guard let request = publish(try .with(coreTypes: Self.coreTypes)) else { return }
        let previous = looking.withLock { looking in
            defer { looking.request = request }
            return looking.request
        }
        previous?.cancel()
    }

    /// Sends a request, and adds the objects of the answers.
    ///
    /// - Parameter onAnswer: called with the agent of each answer.
    /// - Returns: nil if the request can't be sent now. After a reconnect, the registry asks again.
    private func publish(
        _ event: @autoclosure () throws -> DiscoverEvent,
        onAnswer: @escaping @Sendable (CoatyUUID?) -> Void = { _ in }
    ) -> PendingRequest? {
        guard manager.isConnected else { return nil }
        do {
            return try manager.publish(event()) { [weak self] resolve in
                self?.note(resolve)
                onAnswer(resolve.sourceId)
            }
        } catch {
            logger.warning("objects could not be discovered", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// The current time, in milliseconds since 1970.
    private static var now: Int { Int(CoatyTimestamp.nowMillis()) }
}
