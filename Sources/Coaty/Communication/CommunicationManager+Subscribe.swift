extension CommunicationManager {
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
    func addOwnSubscriptions(ioContextNames: [String]) throws {
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
}
