extension CommunicationManager {
    /// Observes events with a handler.
    ///
    /// - Parameters:
    ///   - observation: what to observe.
    ///   - onStatus: called with each change of the subscription's status, in order, and never at the same time as the
    ///     handler, unless ``stop()`` has waited too long for a running handler. If the status is known (the agent is
    ///     not connected, or the same selector is already observed), it is called before this function returns.
    ///     Otherwise, and after a reconnect, it is called when the broker has answered; events that arrive before that
    ///     are delivered too. Must not block.
    ///   - onGap: called with the reason when events may have been missed although the connection is up. Called in order
    ///     with events; must not block.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - handler: called for each event, in the order of arrival, on the binding's thread; must not block.
    /// - Returns: the observation, which ends when the returned object is released.
    public func subscribe<Event>(
        _ observation: EventObservation<Event>,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onGap: (@Sendable (GapReason) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        let isIncluded = observation.isIncluded
        return session.subscribe(
            .events(Event.eventType, name: observation.name),
            decode: decoder(observation.prepare),
            onStatus: onStatus,
            onGap: onGap,
            onEnd: onEnd
        ) { event in
            if isIncluded?(event) ?? true { handler(event) }
        }
    }

    /// Observes raw events with a handler.
    ///
    /// - Parameters:
    ///   - topic: a topic filter of the binding; over MQTT it may contain wildcards. Messages on Coaty's own topics are
    ///     not delivered.
    ///   - onStatus: called with each change of the subscription's status, as in
    ///     ``subscribe(_:onStatus:onGap:onEnd:handler:)``.
    ///   - onGap: called when events may have been missed although the connection is up.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - handler: called for each event on the binding's thread; must not block.
    /// - Returns: the observation, which ends when the returned object is released.
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    public func subscribe(
        rawTopic topic: String,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onGap: (@Sendable (GapReason) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (RawEvent) -> Void
    ) throws(CommunicationError) -> Subscription {
        try session.subscribe(rawTopic: topic, onStatus: onStatus, onGap: onGap, onEnd: onEnd, handler: handler)
    }

    /// Observes the responses to a request, which the caller publishes next.
    func subscribe<Event: CommunicationEvent>(
        responsesTo correlationId: CoatyUUID,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        session.subscribe(
            .responses(Event.eventType, correlationId: correlationId),
            wakes: false,
            decode: decoder(nil),
            onStatus: onStatus,
            onEnd: onEnd,
            handler: handler
        )
    }

    /// Returns a function that decodes the events of a selector.
    private func decoder<Event: CommunicationEvent>(
        _ prepare: (@Sendable (inout Event, Responder) -> Void)?
    ) -> Dispatcher<Event>.Decoder {
        let (responder, maximumValues) = (Responder(manager: self), maximumEventValues)
        return { message throws(PayloadError) in
            guard case .event(let address) = message.origin else {
                throw .invalid(pointer: "", reason: "not an event of Coaty")
            }
            var event = try Event(payload: Payload(message.payload, maximumValues: maximumValues), address: address)
            prepare?(&event, responder)
            return event
        }
    }

    /// Adds the observations of every agent: Discover events, because they may ask for its identity or its IO nodes,
    /// and the Associate events of its IO contexts. Other observers of the same selectors share these subscriptions.
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
        session.addPermanent(
            .events(Event.eventType, name: observation.name),
            decode: decoder(observation.prepare),
            handler: handler
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
                // An Advertise event and a Resolve event that contain only an object have the same payload.
                for node in ioNodeEvents { try event.resolve(ResolveEvent(payload: node.payload)) }
            }
        } catch {
            logger.warning("a Discover event could not be answered", metadata: ["error": "\(error)"])
        }
    }
}
