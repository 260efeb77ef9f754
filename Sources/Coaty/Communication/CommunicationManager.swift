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
    let ioAssociations: IoAssociations
    private let observedNamespace: String?
    private let identityResolve: ResolveEvent
    private let ioNodeEvents: [AdvertiseEvent]
    private let farewell: Publication
    private let binding: any Binding
    private let operatingState = ObservableState(OperatingState.stopped)
    private let stopping = Mutex(Stopping())
    private let communicationState = ObservableState(CommunicationState.offline)
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
        self.logger = logger
        dropLog = DropLog(logger: logger)
        try addOwnSubscriptions(ioContextNames: ioNodes.map(\.name))
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

    // MARK: - Subscriptions

    /// Observes events by a handler.
    ///
    /// - Parameters:
    ///   - observation: what to observe.
    ///   - onStatus: called with each change of the subscription's status, in order, and not beside the handler, unless
    ///     ``stop()`` has waited too long for a handler that is under way. At once, before this returns, where the status is
    ///     known: the link is down, or others have observed the same. Otherwise, and when the link comes back, as soon as the
    ///     broker has answered; events that come before that are handed over too. Must not block.
    ///   - onEnd: called when the communication manager stops while the observation is under way.
    ///   - handler: called for each event, in the order in which they come, on the binding's thread; must not block.
    /// - Returns: the observation: it ends when this is released.
    public func subscribe<Event>(
        _ observation: EventObservation<Event>,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        let (key, topicFilter) = address(of: observation)
        let isIncluded = observation.isIncluded
        return subscribe(
            key,
            topicFilter: topicFilter,
            decode: decoder(observation.prepare),
            onStatus: onStatus,
            onEnd: onEnd
        ) { event in
            if isIncluded?(event) ?? true { handler(event) }
        }
    }

    /// Observes raw events by a handler.
    ///
    /// - Parameters:
    ///   - topic: a topic filter, which may hold wildcards. Messages on Coaty's own topics don't come.
    ///   - onStatus: called with each change of the subscription's status, as in ``subscribe(_:onStatus:onEnd:handler:)``.
    ///   - onEnd: called when the communication manager stops while the observation is under way.
    ///   - handler: called for each event on the binding's thread; must not block.
    /// - Returns: the observation: it ends when this is released.
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    public func subscribe(
        rawTopic topic: String,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (RawEvent) -> Void
    ) throws(CommunicationError) -> Subscription {
        guard RawTopic.isObservable(topic) else { throw .invalidTopic(topic) }
        return subscribe(topic: topic, onStatus: onStatus, onEnd: onEnd, handler: handler)
    }

    /// Observes a topic filter, or the topic of an IO route.
    func subscribe(
        topic: String,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (RawEvent) -> Void
    ) -> Subscription {
        subscribe(
            .topic(TopicLevel(topic)),
            topicFilter: topic,
            decode: { RawEvent(topic: $0.topic, payload: $0.payload) },
            onStatus: onStatus,
            onEnd: onEnd,
            handler: handler
        )
    }

    /// Observes the responses to a request.
    func subscribe<Event: CommunicationEvent>(
        responsesTo correlationId: CoatyUUID,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        let topicFilter = CommunicationTopic.subscription(
            Event.eventType,
            namespace: observedNamespace,
            correlationId: correlationId
        )
        let key = SubscriptionTable.Key.response(Event.eventType, correlationId: TopicLevel(correlationId.string))
        return subscribe(
            key,
            topicFilter: topicFilter,
            decode: decoder(nil),
            onStatus: onStatus,
            onEnd: onEnd,
            handler: handler
        )
    }

    /// Where the table has an observation, and what the broker has to know of it.
    private func address<Event>(
        of observation: EventObservation<Event>
    ) -> (key: SubscriptionTable.Key, topicFilter: String) {
        (
            .event(Event.eventType, filter: observation.filter.map(TopicLevel.init)),
            CommunicationTopic.subscription(
                Event.eventType,
                filter: observation.filter,
                namespace: observedNamespace
            )
        )
    }

    /// Reads the events of a topic.
    private func decoder<Event: CommunicationEvent>(
        _ prepare: (@Sendable (inout Event, Responder) -> Void)?
    ) -> Dispatcher<Event>.Decoder {
        let responder = Responder(manager: self)
        return { message throws(PayloadError) in
            guard let topic = message.coatyTopic else { throw .invalid(pointer: "", reason: "not on a topic of Coaty") }
            var event = try Event(payload: Payload(message.payload), topic: topic)
            prepare?(&event, responder)
            return event
        }
    }

    private func subscribe<Event: Sendable>(
        _ key: SubscriptionTable.Key,
        topicFilter: String,
        decode: @escaping Dispatcher<Event>.Decoder,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)?,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        let observer = onStatus.map(StatusObserver.init)
        var wake = false
        func add() -> (id: UInt64, status: SubscriptionStatus?) {
            subscriptions.add(
                key,
                topicFilter: topicFilter,
                decode: decode,
                handler: handler,
                onEnd: onEnd,
                isPermanent: false,
                status: observer
            ) { wake = outbox.subscribe($0, ticket: $1) }
        }
        let id = observer?.begin(add) ?? add().id
        if wake { binding.wake() }
        return Subscription { [weak self] in self?.unsubscribe(key, id: id) }
    }

    private func unsubscribe(_ key: SubscriptionTable.Key, id: UInt64) {
        var wake = false
        subscriptions.remove(key, id: id) { wake = outbox.unsubscribe($0) }
        if wake { binding.wake() }
    }

    /// What every agent observes: Discover events, since they may ask for its identity or its IO nodes, and what the
    /// routers of its IO contexts say. Others who observe the same join these subscriptions.
    private func addOwnSubscriptions(ioContextNames: [String]) throws {
        for name in ioContextNames {
            addPermanent(try .associate(ioContextName: name)) { [weak self] event in self?.handle(event) }
        }
        addPermanent(.discover) { [weak self] event in self?.answer(event) }
    }

    private func addPermanent<Event>(
        _ observation: EventObservation<Event>,
        handler: @escaping @Sendable (Event) -> Void
    ) {
        let (key, topicFilter) = address(of: observation)
        _ = subscriptions.add(
            key,
            topicFilter: topicFilter,
            decode: decoder(observation.prepare),
            handler: handler,
            onEnd: nil,
            isPermanent: true,
            changed: { _, _ in }
        )
    }

    private func answer(_ event: DiscoverEvent) {
        let asked = event.data
        let isForTypes = asked.isDiscoveringTypes()
        do {
            if isForTypes && asked.isCoreTypeCompatible(.Identity)
                || asked.isDiscoveringObjectId() && asked.objectId == identityId
            {
                try event.resolve(identityResolve)
            }
            if isForTypes && asked.isCoreTypeCompatible(.IoNode) {
                // An Advertise and a Resolve with an object alone have the same payload.
                for node in ioNodeEvents { try event.resolve(ResolveEvent(payload: node.payload)) }
            }
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
        subscriptions.open { filters, ticket in
            outbox.open(
                subscriptions: filters,
                ticket: ticket,
                joinEvents: ([identityEvent] + ioNodeEvents).flatMap { publications(of: $0, isDeferrable: false) }
            )
        }
        // First the subscriptions, so that who acts when it is online acts behind them.
        binding.wake()
        communicationState.set(.online)
        logger.info("online")
    }

    func linkClosed() {
        var givenUp: [Publication] = []
        // Under the table's lock, so that whoever subscribes sees the same state as the outbox has.
        let cut = subscriptions.close {
            let remains = outbox.close()
            givenUp = remains.publications
            communicationState.set(.offline)
            return remains.wasLeaving ? nil : remains.tickets
        }
        if let cut {
            logger.error(
                "a subscription is left out: the broker cuts the link upon it",
                metadata: ["topic filter": "\(DropLog.short(cut))"]
            )
        }
        // Whoever published one that is not deferrable knows by the state of the link.
        for publication in givenUp where publication.isDeferrable {
            logger.error(
                "not published: the link was lost each time it was sent",
                metadata: ["topic": "\(DropLog.short(publication.topic))", "bytes": "\(publication.payload.count)"]
            )
            if let topic = CommunicationTopic(publication.topic), let correlationId = topic.correlationId,
                let responseType = topic.eventType.responseType
            {
                // Nobody was asked, so nobody will answer.
                subscriptions.end(.response(responseType, correlationId: TopicLevel(correlationId.string)))
            }
        }
    }

    func subscribed(_ ticket: UInt64, refused: [String]) {
        var wake = false
        subscriptions.acknowledge(ticket, refused: refused) { topicFilter, ticket in
            // The next one waits for its answer.
            wake = outbox.subscribe(topicFilter, ticket: ticket, mayBeUndone: false)
        }
        if wake { binding.wake() }
    }

    func received(topic: String, payload: [UInt8]) {
        let message = InboundMessage(topic: topic, payload: payload)
        guard let coatyTopic = message.coatyTopic else {
            if RawTopic.isCoaty(topic) {
                dropLog.note("a message on a topic of no Coaty event", topic: topic)
            } else {
                for dispatcher in subscriptions.dispatchers(forRawTopic: topic) { deliver(message, to: dispatcher) }
            }
            return
        }
        // A raw observation by a wildcard may bring in what other namespaces say.
        if coatyTopic.eventType != .ioValue, let observedNamespace,
            TopicLevel(coatyTopic.namespace) != TopicLevel(observedNamespace)
        {
            return
        }
        // The topic of IO values is one route, to be observed as it is.
        let key = coatyTopic.eventType == .ioValue ? .topic(TopicLevel(topic)) : SubscriptionTable.Key(coatyTopic)
        if let dispatcher = subscriptions.dispatcher(for: key) { deliver(message, to: dispatcher) }
    }

    private func deliver(_ message: InboundMessage, to dispatcher: any Dispatching) {
        do throws(PayloadError) {
            try dispatcher.deliver(message)
        } catch {
            dropLog.note("an event that is not valid", topic: message.topic, error: error)
        }
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

/// Carries the responses to a request that came in back to who asked.
public struct Responder: Sendable {
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
