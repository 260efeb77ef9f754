public import Logging
import Synchronization

/// Publishes and observes events, and keeps the agent in the network.
///
/// While it is stopped or not connected, publications and subscriptions wait, and so do requests for as long as they last: see
/// ``Delivery`` and ``PendingRequest``. Handlers run on the binding's thread and must not block. A communication manager that was
/// started keeps itself alive until it is stopped.
public final class CommunicationManager: Sendable {
    /// Maximum number of events that an async stream keeps for a slow reader; then the oldest are dropped.
    public static let streamBuffer = 4096

    /// The id of the agent's identity: the source of everything it publishes.
    public let identityId: CoatyUUID
    /// The namespace that the agent publishes in.
    public let namespace: String
    /// The Advertise event of the agent's identity.
    public let identityEvent: AdvertiseEvent

    let session: Session
    let logger: Logger
    let dropLog: DropLog
    /// For what comes in over sessions that only observe, which is not among the messages that the agent receives.
    let observerDropLog: DropLog
    let receivedMessages = Atomic(0)
    /// The messages of the sessions that observe traffic for this agent, and of those that observe raw events.
    package let trafficCounts = MessageCounts()
    package let rawCounts = MessageCounts()
    let ioAssociations: IoAssociations
    let observesAllNamespaces: Bool
    let identityResolve: ResolveEvent
    let ioNodeEvents: [AdvertiseEvent]
    /// The ids of the identity and the IO nodes: the farewell withdraws objects with one of these as parent.
    let ownIds: Set<CoatyUUID>
    /// Maximum number of JSON values in an event that is received.
    let maximumEventValues: Int
    /// Makes the bindings of further sessions.
    let makeBinding: @Sendable (Logger) throws -> any Binding

    /// Creates a communication manager; ``start()`` lets it join.
    ///
    /// - Parameters:
    ///   - identity: the identity of the agent.
    ///   - ioNodes: what the agent contributes to IO contexts, as it is at this moment; one per context. They become the
    ///     identity's children.
    ///   - options: how to take part.
    ///   - logger: the log.
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidName(_:)`` if the identity, an IO node or the
    ///   namespace is not valid; errors of the binding's maker.
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
            payload: try DeadvertiseEvent.with(objectIds: ids).payload.bytes
        )
        let joinEvents = ([identityEvent] + ioNodeEvents).flatMap { event in
            event.object.names.map { name in
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
                messageCounts: options.messageCounts
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

    // MARK: - Life

    /// Joins the network: connects, and connects again whenever the connection is lost. Does nothing if it is started.
    ///
    /// While a ``stop()`` is under way, it starts again after that.
    public func start() { session.start(self) }

    /// Stops and starts again: deferred publications are discarded, observations end.
    public func restart() async {
        await stop()
        start()
    }

    /// Leaves the network: what is on its way goes out, then the identity is deadvertised. Deferred publications are
    /// discarded, all observations end. Does nothing if it is stopped; while a stop is under way, it waits for that.
    public func stop() async { await session.stop(forGood: false, self) }

    /// Stops for good.
    func close() async { await session.stop(forGood: true, self) }

    /// Sets who acts before the agent joins and before it leaves.
    func setLifecycleDelegate(_ delegate: (any LifecycleDelegate)?) { session.setLifecycleDelegate(delegate) }

    // MARK: - State

    /// The operating state, then each change.
    public func getOperatingState() -> AsyncStream<OperatingState> { session.operatingState.stream() }

    /// The communication state, then each change.
    public func getCommunicationState() -> AsyncStream<CommunicationState> { session.communicationState.stream() }

    /// Whether the agent is connected and the broker has answered all subscriptions that stood when the connection came up, or
    /// has not done so for a minute.
    public var isOnline: Bool { onlinePeriod != nil }

    /// Whether the agent is connected: what is published goes out.
    public var isConnected: Bool { session.core.withLock { $0.state.sends } }

    /// The number of the present online period; nil while the agent is not online.
    ///
    /// Each connection has a number of its own, and numbers only grow: two equal numbers say that no event was missed between
    /// them because of a lost connection.
    public var onlinePeriod: Int? { session.core.withLock { $0.state.onlinePeriod } }

    /// The number of each online period when it begins, beginning with the present one if there is one.
    ///
    /// For what has to be done again after a reconnect. A reader that is slow gets the latest number only: a number that
    /// differs from the last one says that the connection was lost in between, however short that was. The stream goes on when
    /// the communication manager is stopped and started again.
    public func onlinePeriods() -> AsyncStream<Int> {
        // Under the lock, so that no period begins in between.
        session.core.withLock { core in
            session.lastOnlinePeriod.stream(includesCurrent: core.state.onlinePeriod != nil)
        }
    }

    /// Why the agent is not connected; nil if it is, or no attempt has failed yet.
    public var connectionError: ConnectionError? { session.core.withLock { $0.state.connectionError } }

    /// How much may be queued.
    var outboxLimits: OutboxLimits { session.configuration.limits }

    /// What is queued for the connection.
    public var queued: QueuedPublications {
        session.core.withLock { core in
            QueuedPublications(
                publications: core.outbox.publications,
                bytes: core.outbox.bytes,
                operations: core.outbox.operations
            )
        }
    }

    /// Whether the agent is connected, and everything that was published is written, the Advertise event of its identity included.
    package var hasWrittenEverything: Bool { session.core.withLock { $0.state.sends && $0.outbox.isDrained } }

    /// Counters of publications and messages, and the state of the connection.
    public var statistics: CommunicationStatistics {
        let (received, invalid) = (receivedMessages.load(ordering: .relaxed), dropLog.dropped)
        return session.core.withLock { core in
            CommunicationStatistics(
                state: core.state.onlinePeriod == nil ? .offline : .online,
                since: core.counts.since,
                reconnects: max(0, core.state.period - 1),
                connectionError: core.state.connectionError,
                refusedSubscriptions: core.subscriptions.refusedCount,
                received: received,
                invalid: invalid,
                published: core.counts.published,
                deferred: core.counts.deferred,
                queued: core.outbox.publications,
                queuedBytes: core.outbox.bytes,
                oldestQueued: core.outbox.oldestQueued
            )
        }
    }

    /// Calls an action once, as soon as fewer publications and fewer bytes are queued than given. Not while nothing is sent, and
    /// not when the agent stops.
    ///
    /// - Parameter action: called on the calling thread if there is room now, else on the binding's; must not block.
    /// - Returns: forgets the action when it is released.
    func whenRoom(below publications: Int, bytes: Int, _ action: @escaping @Sendable () -> Void) -> Subscription {
        session.whenRoom(below: publications, bytes: bytes, action)
    }
}
