extension CommunicationManager {
    /// Objects of a core type as they are advertised.
    ///
    /// The stream ends when the communication manager stops; dropping it, or cancelling the task that reads it, ends the
    /// observation. It keeps ``streamBuffer`` events for a reader that is behind.
    public func observeAdvertise(withCoreType coreType: CoreType) -> AsyncStream<AdvertiseEvent> {
        observe(.advertise(withCoreType: coreType))
    }

    /// Objects of an object type as they are advertised.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeAdvertise(
        withObjectType objectType: String
    ) throws(CommunicationError) -> AsyncStream<AdvertiseEvent> {
        observe(try .advertise(withObjectType: objectType))
    }

    /// Objects and agents as they are deadvertised.
    public func observeDeadvertise() -> AsyncStream<DeadvertiseEvent> {
        observe(.deadvertise)
    }

    /// What is delivered through a channel.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeChannel(channelId: String) throws(CommunicationError) -> AsyncStream<ChannelEvent> {
        observe(try .channel(channelId))
    }

    /// What other agents, and this one, look for. Answer with ``DiscoverEvent/resolve(_:)``.
    public func observeDiscover() -> AsyncStream<DiscoverEvent> {
        observe(.discover)
    }

    /// What other agents, and this one, query. Answer with ``QueryEvent/retrieve(_:)``.
    public func observeQuery() -> AsyncStream<QueryEvent> {
        observe(.query)
    }

    /// Updates that are asked for, of objects of a core type. Answer with ``UpdateEvent/complete(_:)``.
    public func observeUpdate(withCoreType coreType: CoreType) -> AsyncStream<UpdateEvent> {
        observe(.update(withCoreType: coreType))
    }

    /// Updates that are asked for, of objects of an object type. Answer with ``UpdateEvent/complete(_:)``.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeUpdate(
        withObjectType objectType: String
    ) throws(CommunicationError) -> AsyncStream<UpdateEvent> {
        observe(try .update(withObjectType: objectType))
    }

    /// Calls of an operation. Answer with ``CallEvent/returnEvent(_:)``.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - context: what the observer is: then only calls come whose filter matches it. As it is at this moment.
    /// - Throws: ``CommunicationError/invalidName(_:)``; `EncodingError` where the context can't be encoded.
    public func observeCall(operation: String, context: CoatyObject? = nil) throws -> AsyncStream<CallEvent> {
        observe(try .call(operation: operation, context: context))
    }

    /// What the IO routers of a context say.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeAssociate(
        ioContextName: String
    ) throws(CommunicationError) -> AsyncStream<AssociateEvent> {
        observe(try .associate(ioContextName: ioContextName))
    }

    /// Messages on topics outside of Coaty's own.
    ///
    /// - Parameter topic: a topic filter, which may hold wildcards. Where several that are observed match a message, a
    ///   broker may send it once for each.
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

    /// Turns an observation by handler into a stream.
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
