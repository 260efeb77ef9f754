import Synchronization

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
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
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
    /// - Throws: ``CommunicationError/invalidTopicLevel(_:)``
    public func observeChannel(channelId: String) throws(CommunicationError) -> AsyncStream<ChannelEvent> {
        observe(try .channel(channelId))
    }

    /// What other agents, and this one, look for. Answer with ``DiscoverEvent/resolve(_:)``.
    public func observeDiscover() -> AsyncStream<DiscoverEvent> {
        observe(.discover)
    }

    private func observe<Event>(_ observation: EventObservation<Event>) -> AsyncStream<Event> {
        stream { (onEnd, handler) throws(Never) in subscribe(observation, onEnd: onEnd, handler: handler) }
    }

    /// Turns a subscription by handler into a stream.
    func stream<Event: CommunicationEvent, Failure: Error>(
        _ subscribe: (
            _ onEnd: @escaping @Sendable () -> Void,
            _ handler: @escaping @Sendable (Event) -> Void
        ) throws(Failure) -> Subscription
    ) throws(Failure) -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingNewest(Self.streamBuffer)
        )
        let dropped = Counter()
        let logger = logger
        let subscription = try subscribe({ continuation.finish() }) { event in
            guard case .dropped = continuation.yield(event) else { return }
            let count = dropped.increment()
            // Told at 1, 2, 4, 8…: a reader that never catches up must not fill the log.
            if count & (count - 1) == 0 {
                logger.warning("a reader is behind", metadata: ["event": "\(Event.eventType)", "dropped": "\(count)"])
            }
        }
        continuation.onTermination = { _ in subscription.cancel() }
        return stream
    }
}

private final class Counter: Sendable {
    private let value = Atomic(0)

    func increment() -> Int { value.add(1, ordering: .relaxed).newValue }
}
