public import Logging
import Synchronization

/// Publishes and observes events, and keeps the agent's membership in the network.
///
/// While it is stopped or offline, publications and subscriptions are deferred; requests fail, since nobody could answer
/// them. Handlers run on the binding's thread and must not block. A communication manager that was started keeps itself
/// alive until it is stopped.
public final class CommunicationManager: Sendable {
    private struct Stopping {
        var isUnderWay = false
        var startsAgain = false
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
    private let observedNamespace: String?
    private let identityResolve: ResolveEvent
    private let farewell: Publication
    private let binding: any Binding
    let dropLog: DropLog
    private let operatingState = ObservableState(OperatingState.stopped)
    private let stopping = Mutex(Stopping())
    private let communicationState = ObservableState(CommunicationState.offline)

    /// Creates a communication manager; ``start()`` lets it join.
    ///
    /// - Throws: `EncodingError`, ``PayloadError`` or ``CommunicationError/invalidTopicLevel(_:)`` where the identity or the
    ///   namespace is not valid.
    public init(
        identity: Identity,
        options: CommunicationOptions = CommunicationOptions(),
        binding: any Binding,
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
        outbox = Outbox(limits: options.outboxLimits)
        farewell = Publication(
            topic: CommunicationTopic.publication(.deadvertise, namespace: namespace, sourceId: identityId),
            payload: try DeadvertiseEvent.with(objectIds: identityId).payload.bytes,
            isDeferrable: false
        )
        self.binding = binding
        self.logger = logger
        dropLog = DropLog(logger: logger)
        addOwnSubscriptions()
    }

    // MARK: - Life

    /// Joins the network: connects, and connects again whenever the link is lost. Does nothing where it is started.
    ///
    /// While a ``stop()`` is under way, it starts again when that is done.
    public func start() {
        let hexDigits = identityId.string.replacing("-", with: "").prefix(18)
        let link = Link(clientId: "Coaty" + hexDigits, will: farewell, outbox: outbox, events: self)
        stopping.withLock { stopping in
            guard !stopping.isUnderWay else {
                stopping.startsAgain = true
                return
            }
            // Under the lock, so that a stop finds either nothing or a link that it can leave.
            if operatingState.set(.started) { binding.join(link) }
        }
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
        if outbox.leave(farewell: farewell) { binding.wake() }
        await binding.leave()
        communicationState.set(.offline)
        outbox.discard()
        subscriptions.removeAll()
        let ended = stopping.withLock { stopping in
            defer { stopping = Stopping() }
            return stopping
        }
        for continuation in ended.waiting { continuation.resume() }
        if ended.startsAgain { start() }
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

    // MARK: - Subscriptions

    /// Observes events by a handler.
    ///
    /// - Parameters:
    ///   - observation: what to observe.
    ///   - onEnd: called when the communication manager stops while the observation is under way.
    ///   - handler: called for each event, in the order in which they come, on the binding's thread; must not block.
    /// - Returns: the observation: it ends when this is released.
    public func subscribe<Event>(
        _ observation: EventObservation<Event>,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        let topicFilter = CommunicationTopic.subscription(
            Event.eventType,
            filter: observation.filter,
            namespace: observedNamespace
        )
        let isIncluded = observation.isIncluded
        let key = SubscriptionTable.Key.event(Event.eventType, filter: observation.filter.map(TopicLevel.init))
        return subscribe(key, topicFilter: topicFilter, onEnd: onEnd) {
            (event: Event) in
            if isIncluded?(event) ?? true { handler(event) }
        }
    }

    /// Observes the responses to a request.
    func subscribe<Event: CommunicationEvent>(
        responsesTo correlationId: CoatyUUID,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        let topicFilter = CommunicationTopic.subscription(
            Event.eventType,
            namespace: observedNamespace,
            correlationId: correlationId
        )
        let key = SubscriptionTable.Key.response(Event.eventType, correlationId: TopicLevel(correlationId.string))
        return subscribe(key, topicFilter: topicFilter, onEnd: onEnd, handler: handler)
    }

    private func subscribe<Event: CommunicationEvent>(
        _ key: SubscriptionTable.Key,
        topicFilter: String,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        var wake = false
        let id = subscriptions.add(
            key,
            topicFilter: topicFilter,
            prepare: nil,
            handler: handler,
            onEnd: onEnd,
            isPermanent: false
        ) { wake = outbox.change(.subscribe([$0])) }
        if wake { binding.wake() }
        return Subscription { [weak self] in self?.unsubscribe(key, id: id) }
    }

    private func unsubscribe(_ key: SubscriptionTable.Key, id: UInt64) {
        var wake = false
        subscriptions.remove(key, id: id) { wake = outbox.change(.unsubscribe($0)) }
        if wake { binding.wake() }
    }

    /// What every agent observes and answers: Discover events that ask for its identity. Others who observe Discover
    /// events join this subscription, and can answer too.
    private func addOwnSubscriptions() {
        let key = SubscriptionTable.Key.event(.discover, filter: nil)
        _ = subscriptions.add(
            key,
            topicFilter: CommunicationTopic.subscription(.discover, namespace: observedNamespace),
            prepare: { [weak self] event in event.responder = Responder(manager: self) },
            handler: { [weak self] (event: DiscoverEvent) in self?.answer(event) },
            onEnd: nil,
            isPermanent: true,
            changed: { _ in }
        )
    }

    private func answer(_ event: DiscoverEvent) {
        let asked = event.data
        let isForIdentity =
            asked.isDiscoveringTypes() && asked.isCoreTypeCompatible(.Identity)
            || asked.isDiscoveringObjectId() && asked.objectId == identityId
        guard isForIdentity else { return }
        do {
            try event.resolve(identityResolve)
        } catch {
            logger.warning("a Discover event could not be answered", metadata: ["error": "\(error)"])
        }
    }

    // MARK: - Publications

    func publish(_ publications: [Publication]) throws(CommunicationError) -> Delivery {
        let result = try outbox.publish(publications)
        if result.wake { binding.wake() }
        return result.delivery
    }
}

extension CommunicationManager: LinkDelegate {
    func linkOpened() {
        // Under the table's lock, so that a subscription that comes now is either among these or queued behind them.
        subscriptions.withTopicFilters { filters in
            outbox.open(subscriptions: filters, joinEvents: publications(of: identityEvent, isDeferrable: false))
        }
        communicationState.set(.online)
        logger.info("online")
        binding.wake()
    }

    func linkClosed() {
        let givenUp = outbox.close()
        communicationState.set(.offline)
        for publication in givenUp {
            if publication.isDeferrable {
                logger.error(
                    "not published: the link was lost each time it was sent",
                    metadata: ["topic": "\(DropLog.short(publication.topic))", "bytes": "\(publication.payload.count)"]
                )
            } else if let topic = CommunicationTopic(publication.topic), let correlationId = topic.correlationId,
                let responseType = topic.eventType.responseType
            {
                // Nobody was asked, so nobody will answer.
                subscriptions.end(.response(responseType, correlationId: TopicLevel(correlationId.string)))
            }
        }
    }

    func received(topic text: String, payload: [UInt8]) {
        guard let topic = CommunicationTopic(text) else {
            dropLog.note("a message on a topic of no Coaty event", topic: text)
            return
        }
        guard let dispatcher = subscriptions.dispatcher(for: topic) else { return }
        do throws(PayloadError) {
            try dispatcher.deliver(payload, topic: topic)
        } catch {
            dropLog.note("an event that is not valid", topic: text, error: error)
        }
    }
}

/// Publishes the responses to a request.
struct Responder: Sendable {
    weak let manager: CommunicationManager?

    func respond(
        _ eventType: CommunicationEventType,
        _ correlationId: CoatyUUID,
        _ payload: Payload
    ) throws(CommunicationError) -> Delivery {
        guard let manager else { throw .offline }
        return try manager.publish([manager.publication(eventType, correlationId: correlationId, payload)])
    }
}
