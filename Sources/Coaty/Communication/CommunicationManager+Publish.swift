import Synchronization

extension CommunicationManager {
    /// Advertises an object: on its core type and, unless that is the core type's own, on its object type.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishAdvertise(_ event: AdvertiseEvent) throws(CommunicationError) -> Delivery {
        try publish(publications(of: event))
    }

    /// Deadvertises objects.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishDeadvertise(_ event: DeadvertiseEvent) throws(CommunicationError) -> Delivery {
        try publish([publication(.deadvertise, event.payload)])
    }

    /// Delivers objects through a channel.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishChannel(_ event: ChannelEvent) throws(CommunicationError) -> Delivery {
        try publish([publication(.channel, filter: event.channelId, event.payload)])
    }

    /// Publishes raw bytes on a topic outside of Coaty's own.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishRaw(_ event: RawEvent) throws(CommunicationError) -> Delivery {
        try publish([Publication(topic: event.topic, payload: event.payload, shouldRetain: event.shouldRetain)])
    }

    /// Publishes a value of an IO source on the route of its associations; nothing while there is none.
    ///
    /// - Returns: whether it goes out now or after the next connect; nil where the source is not associated.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishIoValue(_ event: IoValueEvent) throws(CommunicationError) -> Delivery? {
        guard let ioSourceId = event.ioSourceId, let route = ioAssociations.route(ofSource: ioSourceId) else {
            return nil
        }
        return try publish([Publication(topic: route, payload: event.bytes)])
    }

    /// Associates an IO source with an IO actor, or dissolves their association.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishAssociate(_ event: AssociateEvent) throws(CommunicationError) -> Delivery {
        try publish([publication(.associate, filter: event.ioContextName, event.payload)])
    }

    // MARK: - Requests

    /// Asks for objects: a stream of the answers that fit, as they come.
    ///
    /// The stream ends with the time limit, when it is dropped and when the communication manager stops; then nothing of the
    /// request is left. While offline the request is deferred.
    ///
    /// - Parameters:
    ///   - event: what is asked for.
    ///   - timeLimit: how long answers are awaited; nil waits until the stream is dropped.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishDiscover(
        _ event: DiscoverEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> AsyncStream<ResolveEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Queries objects: a stream of the answers that fit, as they come. It ends as that of
    /// ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishQuery(
        _ event: QueryEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> AsyncStream<RetrieveEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Asks for an update of an object: a stream of the answers that fit, as they come. It ends as that of
    /// ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishUpdate(
        _ event: UpdateEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> AsyncStream<CompleteEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Calls a remote operation: a stream of the answers, as they come. It ends as that of
    /// ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishCall(
        _ event: CallEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> AsyncStream<ReturnEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Publishes a request now or never, and hands over each answer that fits as it comes.
    ///
    /// - Parameters:
    ///   - event: the request.
    ///   - onEnd: called once, when the link is lost, the broker refuses to hand over answers, or the communication manager
    ///     stops: from then on answers may be missed, those that come all the same are handed over. Must not block.
    ///   - handler: called for each answer on the binding's thread; must not block.
    /// - Returns: the observation of the answers: it ends when this is released.
    /// - Throws: ``CommunicationError/offline`` or ``CommunicationError/queueFull(publications:bytes:)``
    public func publish<Request: RequestEvent>(
        _ event: Request,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Request.Response) -> Void
    ) throws(CommunicationError) -> Subscription {
        guard isOnline else { throw .offline }
        return try publish(event, isDeferrable: false, onEnd: onEnd, handler: handler)
    }

    private func responses<Request: RequestEvent>(
        to event: Request,
        timeLimit: Duration?
    ) throws(CommunicationError) -> AsyncStream<Request.Response> {
        try stream(timeLimit: timeLimit) { (onEnd, handler) throws(CommunicationError) in
            try publish(event, isDeferrable: true, onEnd: onEnd, handler: handler)
        }
    }

    private func publish<Request: RequestEvent>(
        _ event: Request,
        isDeferrable: Bool,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (Request.Response) -> Void
    ) throws(CommunicationError) -> Subscription {
        let correlationId = CoatyUUID()
        let filters = event.topicFilters
        // An agent that observes both topics of a request answers both.
        let responders = filters.count > 1 ? Responders() : nil
        let dropLog = dropLog
        let end = onEnd.map { RequestEnd($0) }
        // A request that is deferred outlives the link.
        let isBound = !isDeferrable && end != nil
        let onStatus = { @Sendable (status: SubscriptionStatus) in
            if status != .standing { end?.reach() }
        }
        let subscription = subscribe(
            responsesTo: correlationId,
            onStatus: isBound ? onStatus : nil,
            onEnd: { end?.reach() }
        ) { (response: Request.Response) in
            do throws(PayloadError) {
                try event.checkFits(response)
            } catch {
                dropLog.note("a response that does not fit", topic: response.sourceId?.string ?? "", error: error)
                return
            }
            if responders?.isFirst(response.sourceId) ?? true { handler(response) }
        }
        let requests = filters.map {
            publication(
                Request.eventType,
                filter: $0,
                correlationId: correlationId,
                event.payload,
                isDeferrable: isDeferrable
            )
        }
        _ = try publish(requests)
        end?.requestIsPublished()
        return subscription
    }

    // MARK: - Publications

    /// The publications of an Advertise event, in their order.
    func publications(of event: AdvertiseEvent, isDeferrable: Bool = true) -> [Publication] {
        let filters = event.payload.objectTopicFilters
        return [filters.coreType, filters.objectType].compactMap { filter in
            filter.map { publication(.advertise, filter: $0, event.payload, isDeferrable: isDeferrable) }
        }
    }

    /// A payload on the topic that the agent publishes an event on.
    func publication(
        _ eventType: CommunicationEventType,
        filter: String? = nil,
        correlationId: CoatyUUID? = nil,
        _ payload: Payload,
        isDeferrable: Bool = true
    ) -> Publication {
        let topic = CommunicationTopic.publication(
            eventType,
            filter: filter,
            namespace: namespace,
            sourceId: identityId,
            correlationId: correlationId
        )
        return Publication(topic: topic, payload: payload.bytes, isDeferrable: isDeferrable)
    }
}

/// Tells once that the answers to a request have ended, and not before the request was published.
private final class RequestEnd: Sendable {
    private let onEnd: @Sendable () -> Void
    private let state = Mutex((isPublished: false, isReached: false))

    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    func requestIsPublished() {
        let isDue = state.withLock { state in
            state.isPublished = true
            return state.isReached
        }
        if isDue { onEnd() }
    }

    func reach() {
        let isDue = state.withLock { state in
            defer { state.isReached = true }
            return state.isPublished && !state.isReached
        }
        if isDue { onEnd() }
    }
}

/// Who has answered a request that goes out on several topics.
private final class Responders: Sendable {
    /// How many agents are told apart; of those that come later every answer counts.
    static let limit = 10_000

    private let sourceIds = Mutex<Set<CoatyUUID?>>([])

    func isFirst(_ sourceId: CoatyUUID?) -> Bool {
        sourceIds.withLock { $0.count >= Self.limit || $0.insert(sourceId).inserted }
    }
}
