extension CommunicationManager {
    /// Returns the objects of a core type that are advertised.
    ///
    /// The stream ends when the communication manager stops. If the broker refuses the subscription, the stream goes
    /// on, because the agent requests it again after each connect; ``subscribe(_:onStatus:onGap:onEnd:handler:)``
    /// reports this.
    public func observeAdvertise(withCoreType coreType: CoreType) -> EventStream<AdvertiseEvent> {
        observe(.advertise(withCoreType: coreType))
    }

    /// Returns the objects of an object type that are advertised.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeAdvertise(
        withObjectType objectType: String
    ) throws(CommunicationError) -> EventStream<AdvertiseEvent> {
        observe(try .advertise(withObjectType: objectType))
    }

    /// Returns the Deadvertise events of objects and agents.
    public func observeDeadvertise() -> EventStream<DeadvertiseEvent> {
        observe(.deadvertise)
    }

    /// Returns the events of a channel.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeChannel(channelId: String) throws(CommunicationError) -> EventStream<ChannelEvent> {
        observe(try .channel(channelId))
    }

    /// Returns the Discover events of all agents, including this one. Answer with ``DiscoverEvent/resolve(_:)``.
    public func observeDiscover() -> EventStream<DiscoverEvent> {
        observe(.discover)
    }

    /// Returns the Query events of all agents, including this one. Answer with ``QueryEvent/retrieve(_:)``.
    public func observeQuery() -> EventStream<QueryEvent> {
        observe(.query)
    }

    /// Returns the update requests for objects of a core type. Answer with ``UpdateEvent/complete(_:)``.
    public func observeUpdate(withCoreType coreType: CoreType) -> EventStream<UpdateEvent> {
        observe(.update(withCoreType: coreType))
    }

    /// Returns the update requests for objects of an object type. Answer with ``UpdateEvent/complete(_:)``.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeUpdate(
        withObjectType objectType: String
    ) throws(CommunicationError) -> EventStream<UpdateEvent> {
        observe(try .update(withObjectType: objectType))
    }

    /// Returns the calls of an operation. Answer with ``CallEvent/returnEvent(_:)``.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - context: an object that describes the observer: only calls whose filter matches it are delivered. The object
    ///     is copied at this moment.
    /// - Throws: ``CommunicationError/invalidName(_:)``; `EncodingError` if the context can't be encoded.
    public func observeCall(operation: String, context: CoatyObject? = nil) throws -> EventStream<CallEvent> {
        observe(try .call(operation: operation, context: context))
    }

    /// Returns the Associate events of an IO context.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeAssociate(
        ioContextName: String
    ) throws(CommunicationError) -> EventStream<AssociateEvent> {
        observe(try .associate(ioContextName: ioContextName))
    }

    /// Returns the messages on topics that Coaty does not use.
    ///
    /// - Parameter topic: a topic filter, which may contain wildcards. If several observed filters match a message, a
    ///   broker may send the message once for each of them.
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    public func observeRaw(topic: String) throws(CommunicationError) -> EventStream<RawEvent> {
        try stream(size: { $0.payload.count }) { (onEnd, handler) throws(CommunicationError) in
            let subscription = try subscribe(rawTopic: topic, onEnd: { onEnd(.stopped) }, handler: handler)
            return { subscription.cancel() }
        }
    }

    private func observe<Event>(_ observation: EventObservation<Event>) -> EventStream<Event> {
        stream(size: { $0.payload.footprint }) { (onEnd, handler) throws(Never) in
            let subscription = subscribe(observation, onEnd: { onEnd(.stopped) }, handler: handler)
            return { subscription.cancel() }
        }
    }

    /// Converts an observation with a handler into a stream.
    ///
    /// - Parameters:
    ///   - size: returns the number of bytes that an event takes in memory.
    ///   - begin: begins the observation and returns a function that ends it.
    func stream<Event: Sendable, Failure: Error>(
        timeLimit: Duration? = nil,
        size: @escaping @Sendable (Event) -> Int,
        _ begin: (
            _ onEnd: @escaping @Sendable (StreamEnd) -> Void,
            _ handler: @escaping @Sendable (Event) -> Void
        ) throws(Failure) -> @Sendable () -> Void
    ) throws(Failure) -> EventStream<Event> {
        let (stream, continuation) = EventStream.makeStream(of: Event.self, size: size)
        let reports = DoublingCounter()
        let logger = logger
        let end = try begin({ continuation.finish($0) }) { event in
            guard let dropped = continuation.yield(event), reports.increment() != nil else { return }
            logger.warning(
                "events were dropped, because an observer reads them too slowly",
                metadata: ["event": "\(Event.self)", "dropped": "\(dropped)"]
            )
        }
        let deadline = timeLimit.map { limit in Deadline(after: limit) { continuation.finish(.timeLimit) } }
        continuation.onEnd {
            deadline?.cancel()
            end()
        }
        return stream
    }
}
