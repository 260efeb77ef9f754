public import Logging
import Synchronization

/// Publishes and observes events, and keeps the agent's membership in the network.
///
/// While it is stopped or offline, publications and subscriptions are deferred, and so are requests whose answers come as a
/// stream; ``publish(_:onEnd:handler:)`` throws ``CommunicationError/offline`` instead. Handlers run on the binding's thread
/// and must not block. A communication manager that was started keeps itself alive until it is stopped.
public final class CommunicationManager: Sendable {
    private struct Stopping {
        var isUnderWay = false
        var startsAgain = false
        /// Whether it must not start any more.
        var isClosed = false
        /// The membership that is under way.
        var link: Link?
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// How many events an async stream keeps for a reader that is behind; then the oldest are dropped.
    public static let streamBuffer = 4096

    /// The id of the agent's identity: the source of all it publishes.
    public let identityId: CoatyUUID
    /// The namespace that the agent publishes in.
    public let namespace: String
    /// The Advertise event of the agent's identity.
    public let identityEvent: AdvertiseEvent

    let outbox: Outbox
    let subscriptions = SubscriptionTable()
    let logger: Logger
    let dropLog: DropLog
    /// For what comes in over links of their own, which is not among the messages that the agent receives.
    let trafficDropLog: DropLog
    let receivedMessages = Atomic(0)
    let ioAssociations: IoAssociations
    let observedNamespace: String?
    let identityResolve: ResolveEvent
    let ioNodeEvents: [AdvertiseEvent]
    private let farewell: Publication
    let binding: any Binding
    /// Makes the bindings of further links.
    let makeBinding: @Sendable (Logger) throws -> any Binding
    private let operatingState = ObservableState(OperatingState.stopped)
    private let stopping = Mutex(Stopping())
    let communicationState = ObservableState(CommunicationState.offline)
    private let lifecycle = Mutex<(any LifecycleDelegate)?>(nil)

    /// Creates a communication manager; ``start()`` lets it join.
    ///
    /// - Parameters:
    ///   - identity: the identity of the agent.
    ///   - ioNodes: what the agent contributes to IO contexts, as it is at this moment; one a context. They become the
    ///     identity's children.
    ///   - options: how to take part.
    ///   - logger: for what happens.
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidTopicLevel(_:)`` where the identity, an IO
    ///   node or the namespace is not valid; what the binding's maker throws.
    public init(
        identity: Identity,
        ioNodes: [IoNode] = [],
        options: CommunicationOptions,
        logger: Logger = Logger(label: "coaty")
    ) throws {
        guard CommunicationTopic.isPublishableLevel(options.namespace) else {
            throw CommunicationError.invalidTopicLevel(options.namespace)
        }
        identityId = identity.objectId
        namespace = options.namespace
        observedNamespace = options.shouldEnableCrossNamespacing ? nil : options.namespace
        identityEvent = try AdvertiseEvent.with(object: identity)
        identityResolve = try ResolveEvent.with(object: identity)
        ioAssociations = try IoAssociations(ioNodes: ioNodes)
        for node in ioNodes { node.parentObjectId = identity.objectId }
        ioNodeEvents = try ioNodes.map { try AdvertiseEvent.with(object: $0) }
        outbox = Outbox(limits: options.outboxLimits)
        farewell = Publication(
            topic: CommunicationTopic.publication(.deadvertise, namespace: namespace, sourceId: identityId),
            payload: try DeadvertiseEvent.with(objectIds: [identityId] + ioNodes.map(\.objectId)).payload.bytes,
            isDeferrable: false
        )
        binding = try options.binding(logger)
        makeBinding = options.binding
        self.logger = logger
        dropLog = DropLog(logger: logger)
        trafficDropLog = DropLog(logger: logger)
        try addOwnSubscriptions(ioContextNames: ioNodes.map(\.name))
    }

    // MARK: - Life

    /// Joins the network: connects, and connects again whenever the link is lost. Does nothing where it is started.
    ///
    /// While a ``stop()`` is under way, it starts again when that is done.
    public func start() {
        let link = Link(id: identityId, will: farewell, outbox: outbox, events: self)
        stopping.withLock { stopping in
            guard !stopping.isUnderWay else {
                stopping.startsAgain = true
                return
            }
            // Under the lock, so that a stop finds either nothing or a link that it can leave.
            guard !stopping.isClosed, operatingState.set(.started) else { return }
            stopping.link = link
            if let lifecycle = lifecycle.withLock(\.self) {
                lifecycle.communicationManagerIsStarting { [binding] in binding.join(link) }
            } else {
                binding.join(link)
            }
        }
    }

    /// Stops, and starts anew: what was deferred is discarded, observations end.
    public func restart() async {
        await stop()
        start()
    }

    /// Lets somebody act before the agent joins and before it leaves.
    func setLifecycleDelegate(_ delegate: (any LifecycleDelegate)?) {
        lifecycle.withLock { $0 = delegate }
    }

    /// Leaves the network: what is on its way goes out, then the identity is deadvertised. Deferred publications are
    /// discarded, all observations end. Does nothing where it is stopped; where a stop is under way, it waits for that.
    public func stop() async {
        let mayStop = stopping.withLock { stopping in
            stopping.startsAgain = false
            guard !stopping.isUnderWay, operatingState.set(.stopped) else { return false }
            stopping.isUnderWay = true
            return true
        }
        guard mayStop else { return await untilStopped() }
        await lifecycle.withLock(\.self)?.communicationManagerIsStopping()
        if outbox.leave(farewell: farewell) { binding.wake() }
        await binding.leave()
        // A thread of the binding's that was held back must not act on what comes next.
        stopping.withLock(\.link)?.end()
        subscriptions.close {
            communicationState.set(.offline)
            outbox.discard()
            return nil
        }
        subscriptions.removeAll()
        ioAssociations.endAll()
        let ended = stopping.withLock { stopping in
            defer { stopping = Stopping(isClosed: stopping.isClosed) }
            return stopping
        }
        for continuation in ended.waiting { continuation.resume() }
        if ended.startsAgain { start() }
    }

    /// Stops for good.
    func close() async {
        stopping.withLock { $0.isClosed = true }
        await stop()
    }

    private func untilStopped() async {
        await withCheckedContinuation { continuation in
            let isUnderWay = stopping.withLock { stopping in
                if stopping.isUnderWay { stopping.waiting.append(continuation) }
                return stopping.isUnderWay
            }
            if !isUnderWay { continuation.resume() }
        }
    }

    /// The operating state, then each change.
    public func getOperatingState() -> AsyncStream<OperatingState> { operatingState.stream() }

    /// The communication state, then each change.
    public func getCommunicationState() -> AsyncStream<CommunicationState> { communicationState.stream() }

    /// Whether the link is up at this moment.
    public var isOnline: Bool { communicationState.value == .online }

    /// What waits for the link: publications, their bytes, and all operations, changes of subscriptions among them.
    public var waiting: (publications: Int, bytes: Int, operations: Int) { outbox.waiting }

    /// What was published and received, what waits, and how the link stands.
    public var statistics: CommunicationStatistics {
        outbox.statistics(received: receivedMessages.load(ordering: .relaxed), invalid: dropLog.dropped)
    }

    // MARK: - Publications

    func publish(_ publications: [Publication]) throws(CommunicationError) -> Delivery {
        let result = try outbox.publish(publications)
        if result.wake { binding.wake() }
        return result.delivery
    }
}

/// Acts on the life of a communication manager.
protocol LifecycleDelegate: AnyObject, Sendable {
    /// The communication manager starts.
    ///
    /// - Parameter join: lets it join the network; to be called once.
    func communicationManagerIsStarting(then join: @escaping @Sendable () -> Void)

    /// The communication manager is about to leave the network; it waits for this.
    func communicationManagerIsStopping() async
}
