extension CommunicationManager {
    /// Advertises an object: on its core type and, unless that is the core type's own, on its object type.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishAdvertise(_ event: AdvertiseEvent) throws(CommunicationError) -> Delivery {
        let topics = advertiseTopics(of: event)
        let coreType = Publication(topic: topics.coreType, payload: event.payload.bytes)
        guard let objectType = topics.objectType else { return try publish([coreType]) }
        return try publish([coreType, Publication(topic: objectType, payload: event.payload.bytes)])
    }

    /// Deadvertises objects.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishDeadvertise(_ event: DeadvertiseEvent) throws(CommunicationError) -> Delivery {
        let topic = CommunicationTopic.publication(.deadvertise, namespace: namespace, sourceId: identityId)
        return try publish([Publication(topic: topic, payload: event.payload.bytes)])
    }

    /// Delivers objects through a channel.
    ///
    /// - Returns: whether it goes out now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishChannel(_ event: ChannelEvent) throws(CommunicationError) -> Delivery {
        let topic = CommunicationTopic.publication(
            .channel,
            filter: event.channelId,
            namespace: namespace,
            sourceId: identityId
        )
        return try publish([Publication(topic: topic, payload: event.payload.bytes)])
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
        let topic = CommunicationTopic.publication(
            .discover,
            namespace: namespace,
            sourceId: identityId,
            correlationId: correlationId
        )
        _ = try publish([Publication(topic: topic, payload: event.payload.bytes, isDeferrable: false)])
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

    func publications(of event: AdvertiseEvent, isDeferrable: Bool) -> [Publication] {
        let topics = advertiseTopics(of: event)
        return [topics.coreType, topics.objectType].compactMap { topic in
            topic.map { Publication(topic: $0, payload: event.payload.bytes, isDeferrable: isDeferrable) }
        }
    }

    private func advertiseTopics(of event: AdvertiseEvent) -> (coreType: String, objectType: String?) {
        let filters = event.topicFilters
        let topic = { (filter: String) in
            CommunicationTopic.publication(
                .advertise,
                filter: filter,
                namespace: self.namespace,
                sourceId: self.identityId
            )
        }
        return (topic(filters.coreType), filters.objectType.map(topic))
    }
}
