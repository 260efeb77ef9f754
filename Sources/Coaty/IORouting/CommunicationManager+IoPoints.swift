extension CommunicationManager {
    /// Returns whether an IO source or IO actor of this agent is associated: the current state, then each change. A
    /// slow reader gets only the latest change. The stream ends when the communication manager stops.
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

    /// Returns the values that are received for an IO actor of this agent. The stream ends when the communication
    /// manager stops.
    public func observeIoValue(ioActor: IoActor) -> EventStream<IoValueEvent> {
        let id = ioActor.objectId
        return stream(size: \.footprint) { (onEnd, handler) throws(Never) in
            let subscription = subscribe(ioValuesOf: id, onEnd: { onEnd(.stopped) }, handler: handler)
            return { subscription.cancel() }
        }
    }

    /// Observes with a handler whether an IO point of this agent is associated.
    ///
    /// - Parameters:
    ///   - ioPointId: the object id of the source or actor.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - handler: called immediately, and for each change on the binding's thread; must not block.
    /// - Returns: the observation, which ends when the returned object is released.
    public func subscribe(
        ioStateOf ioPointId: CoatyUUID,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (IoStateEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeState(of: ioPointId, .init(handler: handler, onEnd: onEnd, isPermanent: false))
    }

    /// Observes with a handler the values that are received for an IO actor of this agent.
    ///
    /// - Parameters:
    ///   - ioActorId: the object id of the actor.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - onGap: called with the reason when a value was dropped, because it was too large or is not JSON.
    ///   - handler: called for each value on the binding's thread; must not block.
    /// - Returns: the observation, which ends when the returned object is released.
    public func subscribe(
        ioValuesOf ioActorId: CoatyUUID,
        onEnd: (@Sendable () -> Void)? = nil,
        onGap: (@Sendable (GapReason) -> Void)? = nil,
        handler: @escaping @Sendable (IoValueEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeValues(
            of: ioActorId,
            .init(handler: handler, onEnd: onEnd, onGap: onGap, isPermanent: false)
        )
    }

    /// Observes the state of an IO point across restarts of the communication manager.
    func subscribe(
        permanentlyToIoStateOf ioPointId: CoatyUUID,
        handler: @escaping @Sendable (IoStateEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeState(of: ioPointId, .init(handler: handler, onEnd: nil, isPermanent: true))
    }

    /// Observes the values of an IO actor across restarts of the communication manager.
    func subscribe(
        permanentlyToIoValuesOf ioActorId: CoatyUUID,
        handler: @escaping @Sendable (IoValueEvent) -> Void
    ) -> Subscription {
        ioAssociations.observeValues(of: ioActorId, .init(handler: handler, onEnd: nil, isPermanent: true))
    }

    /// Makes the route of an IO source like a router in this agent.
    var makeIoRoute: IoRoutingTable.MakeRoute {
        { [binding = session.binding, namespace] sourceId, externalRoute in
            if let externalRoute, binding.isIoRoute(externalRoute) { return externalRoute }
            return binding.ioRoute(ofSource: sourceId, namespace: namespace)
        }
    }

    /// Returns whether a route of a source is its external route.
    func isExternal(_ route: String, _ sourceId: CoatyUUID) -> Bool {
        WireName(route) != WireName(session.binding.ioRoute(ofSource: sourceId, namespace: namespace))
    }

    /// Handles a router's association of the agent's own IO points.
    func handle(_ event: AssociateEvent) {
        ioAssociations.take(event.data, isRoute: session.binding.isIoRoute) { route, actorId, isRaw in
            session.subscribe(
                .ioRoute(WireName(route)),
                decode: { message in
                    guard case .raw(let topic, _, let sourceId) = message.origin else {
                        return InboundValue(bytes: message.payload, topic: message.label, sourceId: nil)
                    }
                    return InboundValue(bytes: message.payload, topic: topic, sourceId: sourceId)
                },
                onGap: { [weak self] in self?.ioAssociations.noteGap(ofActor: actorId, $0) },
                handler: { [weak self] value in self?.receive(value, for: actorId, isRaw: isRaw) }
            )
        } refuse: { route in
            logger.warning("IO values can't flow on this route", metadata: ["route": "\(DropLog.short(route))"])
        }
    }

    private func receive(_ value: InboundValue, for actorId: CoatyUUID, isRaw: Bool) {
        guard ioAssociations.hasObservers(ofActor: actorId) else { return }
        do throws(PayloadError) {
            let event = try IoValueEvent(value.bytes, isRaw: isRaw, ioSourceId: value.sourceId)
            ioAssociations.deliver(event, to: actorId)
        } catch {
            dropLog.note(invalid: "an IO value that is not JSON", value.sourceId, value.topic, error)
            ioAssociations.noteGap(ofActor: actorId, GapReason(error))
        }
    }
}

/// A message on the route of an IO source.
private struct InboundValue: Sendable {
    let bytes: [UInt8]
    let topic: String
    let sourceId: CoatyUUID?
}
