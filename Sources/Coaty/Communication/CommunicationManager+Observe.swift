extension CommunicationManager {
    /// Returns the objects of a core type that are advertised.
    ///
    /// The stream ends when the communication manager stops. Releasing the stream, or cancelling the task that reads
    /// it, ends the observation. The stream keeps ``streamBuffer`` events for a slow reader.
    public func observeAdvertise(withCoreType coreType: CoreType) -> AsyncStream<AdvertiseEvent> {
        observe(.advertise(withCoreType: coreType))
    }

    /// Returns the objects of an object type that are advertised.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeAdvertise(
        withObjectType objectType: String
    ) throws(CommunicationError) -> AsyncStream<AdvertiseEvent> {
        observe(try .advertise(withObjectType: objectType))
    }

    /// Returns the Deadvertise events of objects and agents.
    public func observeDeadvertise() -> AsyncStream<DeadvertiseEvent> {
        observe(.deadvertise)
    }

    /// Returns the events of a channel.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeChannel(channelId: String) throws(CommunicationError) -> AsyncStream<ChannelEvent> {
        observe(try .channel(channelId))
    }

    /// Returns the Discover events of all agents, including this one. Answer with ``DiscoverEvent/resolve(_:)``.
    public func observeDiscover() -> AsyncStream<DiscoverEvent> {
        observe(.discover)
    }

    /// Returns the Query events of all agents, including this one. Answer with ``QueryEvent/retrieve(_:)``.
    public func observeQuery() -> AsyncStream<QueryEvent> {
        observe(.query)
    }

    /// Returns the update requests for objects of a core type. Answer with ``UpdateEvent/complete(_:)``.
    public func observeUpdate(withCoreType coreType: CoreType) -> AsyncStream<UpdateEvent> {
        observe(.update(withCoreType: coreType))
    }

    /// Returns the update requests for objects of an object type. Answer with ``UpdateEvent/complete(_:)``.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeUpdate(
        withObjectType objectType: String
    ) throws(CommunicationError) -> AsyncStream<UpdateEvent> {
        observe(try .update(withObjectType: objectType))
    }

    /// Returns the calls of an operation. Answer with ``CallEvent/returnEvent(_:)``.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - context: an object that describes the observer: only calls whose filter matches it are delivered. The object
    ///     is copied at this moment.
    /// - Throws: ``CommunicationError/invalidName(_:)``; `EncodingError` if the context can't be encoded.
    public func observeCall(operation: String, context: CoatyObject? = nil) throws -> AsyncStream<CallEvent> {
        observe(try .call(operation: operation, context: context))
    }

    /// Returns the Associate events of an IO context.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeAssociate(
        ioContextName: String
    ) throws(CommunicationError) -> AsyncStream<AssociateEvent> {
        observe(try .associate(ioContextName: ioContextName))
    }

    /// Returns the messages on topics that Coaty does not use.
    ///
    /// - Parameter topic: a topic filter, which may contain wildcards. If several observed filters match a message, a
    ///   broker may send the message once for each of them.
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    public func observeRaw(topic: String) throws(CommunicationError) -> AsyncStream<RawEvent> {
        try stream { (onEnd, handler) throws(CommunicationError) in
            let subscription = try subscribe(rawTopic: topic, onEnd: onEnd, handler: handler)
            return { subscription.cancel() }
        }
    }

    private func observe<Event>(_ observation: EventObservation<Event>) -> AsyncStream<Event> {
        stream { (onEnd, handler) throws(Never) in
            let subscription = subscribe(observation, onEnd: onEnd, handler: handler)
            return { subscription.cancel() }
        }
    }

    /// Converts an observation with a handler into a stream.
    ///
    /// - Parameter begin: begins the observation and returns a function that ends it.
    func stream<Event: Sendable, Failure: Error>(
        timeLimit: Duration? = nil,
        _ begin: (
            _ onEnd: @escaping @Sendable () -> Void,
            _ handler: @escaping @Sendable (Event) -> Void
        ) throws(Failure) -> @Sendable () -> Void
    ) throws(Failure) -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingNewest(Self.streamBuffer)
        )
        let dropped = DoublingCounter()
        let logger = logger
        let end = try begin({ continuation.finish() }) { event in
            guard case .dropped = continuation.yield(event), let count = dropped.increment() else { return }
            logger.warning(
                "events were dropped, because an observer reads them too slowly",
                metadata: ["event": "\(Event.self)", "dropped": "\(count)"]
            )
        }
        let deadline = timeLimit.map { limit in Deadline(after: limit) { continuation.finish() } }
        continuation.onTermination = { _ in
            deadline?.cancel()
            end()
        }
        return stream
    }
}
