extension CommunicationManager {
    /// Whether an IO source or IO actor of this agent is associated: as it is now, then each change; of changes that are not
    /// read in time the latest is kept. The stream ends when the communication manager stops.
    public func observeIoState(ioPoint: IoPoint) -> AsyncStream<IoStateEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: IoStateEvent.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let subscription = subscribe(
            ioStateOf: ioPoint.objectId,
            onEnd: { continuation.finish() },
            handler: { continuation.yield($0) }
        )
        continuation.onTermination = { _ in subscription.cancel() }
        return stream
    }

    /// The values that come for an IO actor of this agent. The stream ends when the communication manager stops.
    public func observeIoValue(ioActor: IoActor) -> AsyncStream<IoValueEvent> {
        let id = ioActor.objectId
        return stream { (onEnd, handler) throws(Never) in subscribe(ioValuesOf: id, onEnd: onEnd, handler: handler) }
    }

    /// Observes by a handler whether an IO point of this agent is associated.
    ///
    /// - Parameters:
    ///   - ioPointId: the object id of the source or actor.
    ///   - onEnd: called when the communication manager stops while the observation is under way.
    ///   - handler: called at once, and for each change on the binding's thread; must not block.
    /// - Returns: the observation: it ends when this is released.
    public func subscribe(
        ioStateOf ioPointId: CoatyUUID,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (IoStateEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeState(of: ioPointId, .init(handler: handler, onEnd: onEnd, isPermanent: false))
    }

    /// Observes by a handler the values that come for an IO actor of this agent.
    ///
    /// - Parameters:
    ///   - ioActorId: the object id of the actor.
    ///   - onEnd: called when the communication manager stops while the observation is under way.
    ///   - handler: called for each value on the binding's thread; must not block.
    /// - Returns: the observation: it ends when this is released.
    public func subscribe(
        ioValuesOf ioActorId: CoatyUUID,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (IoValueEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeValues(of: ioActorId, .init(handler: handler, onEnd: onEnd, isPermanent: false))
    }

    /// Observes the state of an IO point over restarts of the communication manager.
    func subscribe(
        permanentlyToIoStateOf ioPointId: CoatyUUID,
        handler: @escaping @Sendable (IoStateEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeState(of: ioPointId, .init(handler: handler, onEnd: nil, isPermanent: true))
    }

    /// Observes the values of an IO actor over restarts of the communication manager.
    func subscribe(
        permanentlyToIoValuesOf ioActorId: CoatyUUID,
        handler: @escaping @Sendable (IoValueEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeValues(of: ioActorId, .init(handler: handler, onEnd: nil, isPermanent: true))
    }

    /// Takes what a router says of the agent's own IO points.
    func handle(_ event: AssociateEvent) {
        ioAssociations.take(event.data) { route, actorId, isRaw in
            subscribe(topic: route) { [weak self] event in self?.receive(event, for: actorId, isRaw: isRaw) }
        } refuse: { route in
            logger.warning("no values can flow on this route", metadata: ["route": "\(DropLog.short(route))"])
        }
    }

    private func receive(_ event: RawEvent, for actorId: CoatyUUID, isRaw: Bool) {
        guard ioAssociations.hasObservers(ofActor: actorId) else { return }
        if !isRaw {
            do throws(PayloadError) {
                _ = try Payload(event.payload)
            } catch {
                dropLog.note("an IO value that is no JSON", topic: event.topic, error: error)
                return
            }
        }
        let ioSourceId = CommunicationTopic(event.topic)?.sourceId
        let value = IoValueEvent(bytes: event.payload, isRaw: isRaw, ioSourceId: ioSourceId)
        ioAssociations.deliver(value, to: actorId)
    }
}
