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

    /// Asks for objects, and hands over each answer that fits as it comes.
    ///
    /// - Parameters:
    ///   - event: what is asked for.
    ///   - onEnd: called when the communication manager stops while answers are awaited.
    ///   - handler: called for each answer on the binding's thread; must not block.
    /// - Returns: the observation of the answers: it ends when this is released.
    /// - Throws: ``CommunicationError/offline`` or ``CommunicationError/queueFull(publications:bytes:)``
    public func publishDiscover(
        _ event: DiscoverEvent,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (ResolveEvent) -> Void
    ) throws(CommunicationError) -> Subscription {
        guard isOnline else { throw .offline }
        let correlationId = CoatyUUID()
        let dropLog = dropLog
        let subscription = subscribe(responsesTo: correlationId, onEnd: onEnd) { (resolve: ResolveEvent) in
            do throws(PayloadError) {
                try resolve.checkFits(event)
            } catch {
                dropLog.note("a Resolve event that does not fit", topic: resolve.sourceId?.string ?? "", error: error)
                return
            }
            handler(resolve)
        }
        let request = publication(.discover, correlationId: correlationId, event.payload, isDeferrable: false)
        _ = try publish([request])
        return subscription
    }

    /// Asks for objects: a stream of the answers that fit, as they come, until it is dropped or the communication manager
    /// stops.
    ///
    /// - Throws: ``CommunicationError/offline`` or ``CommunicationError/queueFull(publications:bytes:)``
    public func publishDiscover(_ event: DiscoverEvent) throws(CommunicationError) -> AsyncStream<ResolveEvent> {
        try stream { (onEnd, handler) throws(CommunicationError) in
            try publishDiscover(event, onEnd: onEnd, handler: handler)
        }
    }

    /// The publications of an Advertise event, in their order.
    func publications(of event: AdvertiseEvent, isDeferrable: Bool = true) -> [Publication] {
        let filters = event.topicFilters
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
