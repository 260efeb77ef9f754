import Coaty

/// What each source is told.
extension StreamHub {
    /// Lets a source be told what a request asks for.
    func open(_ source: StreamSource, _ request: StreamRequest) {
        let onEnd: @Sendable () -> Void = { [weak self, weak source] in
            if let source { self?.end(source, request) }
        }
        let status: @Sendable (SubscriptionStatus) -> Void = { [weak self, weak source] status in
            guard let source else { return }
            source.update(status)
            // Who comes later asks the broker again.
            if status == .refused { self?.end(source, request) }
        }
        switch request {
        case .advertise(.core(let coreType)):
            observe(.advertise(withCoreType: coreType), source, status, onEnd) { ObservedEvent($0, .objects) }
        case .advertise(.object(let objectType)):
            observe(try? .advertise(withObjectType: objectType.text), source, status, onEnd) {
                ObservedEvent($0, .objects)
            }
        case .deadvertise: observe(.deadvertise, source, status, onEnd) { ObservedEvent($0, .data) }
        case .channel(let channelId):
            observe(try? .channel(channelId.text), source, status, onEnd) {
                ObservedEvent($0, .objects, members: [("channelId", $0.channelId)])
            }
        case .associate(let contextName):
            observe(try? .associate(ioContextName: contextName.text), source, status, onEnd) {
                ObservedEvent($0, .data)
            }
        case .discover: observeRequests(.discover, source, status, onEnd, .data) { .discover($0) }
        case .query: observeRequests(.query, source, status, onEnd, .data) { .query($0) }
        case .update(.core(let coreType)):
            observeRequests(.update(withCoreType: coreType), source, status, onEnd, .objects) { .update($0) }
        case .update(.object(let objectType)):
            observeRequests(try? .update(withObjectType: objectType.text), source, status, onEnd, .objects) {
                .update($0)
            }
        case .call(let operation):
            observeRequests(try? .call(operation: operation.text), source, status, onEnd, .data) { .call($0) }
        case .raw(let topic):
            let subscription = try? manager.subscribe(rawTopic: topic.text, onStatus: status, onEnd: onEnd) {
                [weak source] event in source?.say(ObservedEvent(event))
            }
            hold(subscription, source, onEnd)
        case .ioValue(let id):
            let agent = ioNodes.agent(ofPoint: id)
            let subscription = agent?.subscribe(ioValuesOf: id, onEnd: onEnd) { [weak source] event in
                source?.say(ObservedEvent(event, actor: id))
            }
            hold(subscription, source, onEnd)
            // What every agent observes stands, and goes, with its link.
            hold(agent?.subscribe(.discover, onStatus: status) { _ in }, source, onEnd)
            // A node that went before the subscription does not end it.
            if ioNodes.actor(id) == nil { onEnd() }
        case .ioState(let id):
            let subscription = ioNodes.agent(ofPoint: id)?.subscribe(ioStateOf: id, onEnd: onEnd) {
                [weak source] event in
                guard let payload = try? Payload(Array("{\(IoPointState(event).members)}".utf8)) else { return }
                source?.say(ObservedEvent("iostate", "ioPointId", id, data: payload))
            }
            hold(subscription, source, onEnd)
            if ioNodes.agent(ofPoint: id) == nil { onEnd() }
        case .routing(let id): watch(id, source)
        case .objects: hold(manager.subscribe(.deadvertise, onStatus: status) { _ in }, source, onEnd)
        }
    }

    /// Observes events of the network.
    private func observe<Event>(
        _ observation: EventObservation<Event>?,
        _ source: StreamSource,
        _ status: @escaping @Sendable (SubscriptionStatus) -> Void,
        _ onEnd: @escaping @Sendable () -> Void,
        _ observed: @escaping @Sendable (Event) -> ObservedEvent
    ) {
        // Names that can't be observed were refused when the request was read.
        guard let observation else { return onEnd() }
        let subscription = manager.subscribe(observation, onStatus: status, onEnd: onEnd) { [weak source] event in
            source?.say(observed(event))
        }
        hold(subscription, source, onEnd)
    }

    private func hold(_ subscription: Subscription?, _ source: StreamSource, _ onEnd: () -> Void) {
        guard let subscription else { return onEnd() }
        source.hold { subscription.cancel() }
    }

    /// Observes what others, or other clients, ask for, so that it can be answered.
    private func observeRequests<Event: RequestEvent>(
        _ observation: EventObservation<Event>?,
        _ source: StreamSource,
        _ status: @escaping @Sendable (SubscriptionStatus) -> Void,
        _ onEnd: @escaping @Sendable () -> Void,
        _ subject: ObservedEvent.Subject,
        _ request: @escaping @Sendable (Event) -> ObservedRequests.Request
    ) {
        observe(observation, source, status, onEnd) { [requests] event in
            requests.insert(request(event), event)
            let operation = (event as? CallEvent)?.operation
            let members = [("correlationId", event.correlationId?.string), ("operation", operation)]
            return ObservedEvent(event, subject, members: members)
        }
    }

    /// Watches the associations of a context: as they are, then each change.
    private func watch(_ id: CoatyUUID, _ source: StreamSource) {
        Task {
            let end = await routing.watch(id) { [weak source] pieces in
                for piece in pieces { source?.say(ObservedEvent("routing", "contextId", id, data: piece)) }
            }
            if let end { source.hold(end) } else { source.end() }
        }
    }
}
