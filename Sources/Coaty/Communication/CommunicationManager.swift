public import Logging
import Synchronization

/// Publishes and observes events, and keeps the agent in the network.
///
/// While the manager is stopped or not connected, publications and subscriptions are queued, and requests are queued
/// for as long as they last: see ``Delivery`` and ``PendingRequest``. Handlers run on the binding's thread and must not
/// block. A communication manager that was started keeps itself alive until it is stopped.
public final class CommunicationManager: Sendable {
    /// Maximum number of events that an ``EventStream`` keeps for a slow reader. Beyond that, the oldest are dropped.
    public static let streamBuffer = 4096
    /// Maximum number of bytes of the events that an ``EventStream`` keeps for a slow reader, unless it is a single
    /// event. Beyond that, the oldest are dropped.
    public static let streamBufferBytes = 16 << 20

    /// The id of the agent's identity: the source of all events that the agent publishes.
    public let identityId: CoatyUUID
    /// The namespace that the agent publishes in.
    public let namespace: String
    /// The Advertise event of the agent's identity.
    public let identityEvent: AdvertiseEvent

    let session: Session
    let logger: Logger
    let dropLog: DropLog
    /// Logs dropped messages of sessions that only observe; these do not count as messages of the agent.
    let observerDropLog: DropLog
    let receivedMessages = Atomic(0)
    let ioAssociations: IoAssociations
    let observesAllNamespaces: Bool
    let identityResolve: ResolveEvent
    /// The Advertise events of the agent's IO nodes.
    package let ioNodeEvents: [AdvertiseEvent]
    /// The ids of the identity and the IO nodes: the farewell withdraws objects with one of these as parent.
    let ownIds: Set<CoatyUUID>
    /// Maximum number of JSON values in a received event, from the options.
    public let maximumEventValues: Int
    /// Creates the bindings of further sessions.
    let makeBinding: @Sendable (Logger) throws -> any Binding

    /// Creates a communication manager; ``start()`` connects it.
    ///
    /// - Parameters:
    ///   - identity: the identity of the agent.
    ///   - ioNodes: the agent's IO nodes, one per context. They are copied at this moment and become the identity's
    ///     children.
    ///   - options: the communication options.
    ///   - logger: the log.
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidName(_:)`` if the identity, an IO
    ///   node or the namespace is not valid; errors of the binding's maker.
    public init(
        identity: Identity,
        ioNodes: [IoNode] = [],
        options: CommunicationOptions,
        logger: Logger = Logger(label: "coaty")
    ) throws {
        guard WireName.isPublishable(options.namespace) else { throw CommunicationError.invalidName(options.namespace) }
        identityId = identity.objectId
        namespace = options.namespace
        observesAllNamespaces = options.shouldEnableCrossNamespacing
        identityEvent = try AdvertiseEvent.with(object: identity)
        identityResolve = try ResolveEvent.with(object: identity)
        ioAssociations = try IoAssociations(ioNodes: ioNodes)
        for node in ioNodes { node.parentObjectId = identity.objectId }
        ioNodeEvents = try ioNodes.map { try AdvertiseEvent.with(object: $0) }
        let ids = [identity.objectId] + ioNodes.map(\.objectId)
        ownIds = Set(ids)
        let (namespace, sourceId) = (options.namespace, identity.objectId)
        let farewell = Publication(
            .event(EventAddress(.deadvertise, namespace: namespace, sourceId: sourceId)),
            payload: try DeadvertiseEvent.with(objectIds: ids).payload.bytes,
            sharing: .ends(ids)
        )
        let joinEvents = ([identityEvent] + ioNodeEvents).flatMap { event in
            event.header.names.map { name in
                Publication(
                    .event(EventAddress(.advertise, name: name, namespace: namespace, sourceId: sourceId)),
                    payload: event.payload.bytes,
                    isJoinEvent: true
                )
            }
        }
        session = Session(
            Session.Configuration(
                identityId: identity.objectId,
                namespace: namespace,
                observesAllNamespaces: options.shouldEnableCrossNamespacing,
                limits: options.outboxLimits,
                joinEvents: joinEvents,
                farewell: farewell,
                messageCounts: options.messageCounts,
                makeBinding: options.binding
            ),
            binding: try options.binding(logger),
            log: SessionLog(logger: logger)
        )
        makeBinding = options.binding
        maximumEventValues = options.maximumEventValues
        self.logger = logger
        dropLog = DropLog(logger: logger)
        observerDropLog = DropLog(logger: logger)
        try addOwnSubscriptions(ioContextNames: ioNodes.map(\.name))
    }

    // MARK: - Lifecycle

    /// Joins the network: connects, and reconnects whenever the connection is lost. Does nothing if the manager is
    /// started.
    ///
    /// If called during a ``stop()``, the manager starts again when the stop has finished.
    public func start() { session.start(self) }

    /// Stops and starts again: deferred publications are discarded and observations end.
    public func restart() async {
        await stop()
        start()
    }

    /// Leaves the network: sends the publications that were handed over, then deadvertises the identity. Deferred
    /// publications are discarded and all observations end. Does nothing if the manager is stopped; during another
    /// stop, it waits for that.
    public func stop() async { await session.stop(forGood: false, self) }

    /// Stops permanently.
    func close() async { await session.stop(forGood: true, self) }

    /// Sets the delegate that acts before the agent joins and before it leaves.
    func setLifecycleDelegate(_ delegate: (any LifecycleDelegate)?) { session.setLifecycleDelegate(delegate) }

    // MARK: - State

    /// The operating state: `started` from ``start()`` to ``stop()``.
    public var operatingState: OperatingState { session.operatingState.value }

    /// The communication state: `online` if ``isOnline``.
    public var communicationState: CommunicationState { session.communicationState.value }

    /// Returns the operating state, followed by each change.
    public func getOperatingState() -> AsyncStream<OperatingState> { session.operatingState.stream() }

    /// Returns the communication state, followed by each change.
    public func getCommunicationState() -> AsyncStream<CommunicationState> { session.communicationState.stream() }

    /// Whether the agent is connected and the broker has answered all subscriptions that existed when the connection
    /// came up. Also true if some answers are missing after a minute.
    public var isOnline: Bool { onlinePeriod != nil }

    /// Whether the agent is connected and sends publications.
    public var isConnected: Bool { session.core.withLock { $0.state.sends } }

    /// The number of the current online period; nil while the agent is not online.
    ///
    /// Each connection has its own number, and numbers only increase. If two numbers are equal, no event was missed
    /// between them because of a lost connection.
    public var onlinePeriod: Int? { session.core.withLock { $0.state.onlinePeriod } }

    /// Returns the number of each online period when it begins, starting with the current one if there is one.
    ///
    /// Use it for work that has to be repeated after a reconnect. A slow reader gets only the latest number: if a
    /// number differs from the last one, the connection was lost in between, even if only for a short time. The stream
    /// continues when the communication manager is stopped and started again.
    public func onlinePeriods() -> AsyncStream<Int> {
        // Under the lock, so that no period begins in between.
        session.core.withLock { core in
            session.lastOnlinePeriod.stream(includesCurrent: core.state.onlinePeriod != nil)
        }
    }

    /// The reason why the agent is not connected; nil if it is connected, or no attempt has failed yet.
    public var connectionError: ConnectionError? { session.core.withLock { $0.state.connectionError } }

    /// The limits of the outbox.
    var outboxLimits: OutboxLimits { session.configuration.limits }

    /// The publications that are queued for the connection.
    public var queued: QueuedPublications {
        session.core.withLock { core in
            let own = QueuedPublications(core.outbox)
            guard let suspects = core.quarantine?.queued else { return own }
            return QueuedPublications(
                publications: own.publications + suspects.publications,
                bytes: own.bytes + suspects.bytes,
                operations: own.operations + suspects.operations
            )
        }
    }

    /// Whether the agent is connected and all publications are written, including the Advertise event of its identity.
    public var hasWrittenEverything: Bool {
        session.core.withLock { $0.state.sends && $0.outbox.isDrained && $0.quarantine?.isIdle ?? true }
    }

    /// Counters of publications and messages, and the state of the connection.
    public var statistics: CommunicationStatistics {
        let (received, invalid) = (receivedMessages.load(ordering: .relaxed), dropLog.dropped)
        let invalidBySender = dropLog.invalidBySender
        return session.core.withLock { core in
            CommunicationStatistics(
                state: core.state.onlinePeriod == nil ? .offline : .online,
                since: core.counts.since,
                reconnects: max(0, core.state.period - 1),
                connectionError: core.state.connectionError,
                properties: core.properties,
                refusedSubscriptions: core.subscriptions.refusedCount,
                provenPublications: core.suspects.proven,
                suspects: SuspectStatistics(core),
                received: received,
                invalid: invalid,
                invalidBySender: invalidBySender,
                published: core.counts.published,
                deferred: core.counts.deferred,
                queued: core.outbox.publications,
                queuedBytes: core.outbox.bytes,
                oldestQueued: core.outbox.oldestQueued
            )
        }
    }

    /// Calls an action once, as soon as fewer publications and fewer bytes than the given numbers are queued. The
    /// action is not called while the agent is not connected, nor when the agent stops.
    ///
    /// - Parameter action: called on the calling thread if there is room now, otherwise on the binding's thread; must
    ///   not block.
    /// - Returns: a subscription that discards the action when it is released.
    func whenRoom(below publications: Int, bytes: Int, _ action: @escaping @Sendable () -> Void) -> Subscription {
        session.whenRoom(below: publications, bytes: bytes, action)
    }
}
