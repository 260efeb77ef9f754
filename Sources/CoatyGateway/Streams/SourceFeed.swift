import Coaty

/// What a source is told, and by whom.
struct SourceFeed {
    private let source: StreamSource
    private let request: StreamRequest
    private let manager: CommunicationManager
    private let ioNodes: IoNodeRegistry
    private let routing: RoutingAdmin
    private let requests: ObservedRequests
    private let link: TrafficLinks.Place?
    private let onEnd: @Sendable () -> Void
    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    private let onFailure: @Sendable () -> Void

    /// - Parameter link: the place of the link of its own, where it takes one.
    init(hub: StreamHub, source: StreamSource, request: StreamRequest, link: TrafficLinks.Place? = nil) {
        self.source = source
        self.request = request
        self.link = link
        (manager, ioNodes, routing, requests) = (hub.manager, hub.ioNodes, hub.routing, hub.requests)
        let onEnd: @Sendable () -> Void = { [weak hub, weak source] in
            if let source { hub?.end(source, request) }
        }
        self.onEnd = onEnd
        onFailure = { [weak hub, weak source] in
            if let source { hub?.end(source, request, Problems.tooManySources) }
        }
        onStatus = { [weak source] status in
            source?.update(status)
            // Who comes later asks the broker again.
            if status == .refused { onEnd() }
        }
    }

    func begin() {
        switch request {
        case .advertise(.core(let coreType)):
            observe(.advertise(withCoreType: coreType)) { ObservedEvent($0, .objects) }
        case .advertise(.object(let objectType)):
            observe(try? .advertise(withObjectType: objectType.text)) { ObservedEvent($0, .objects) }
        case .deadvertise: observe(.deadvertise) { ObservedEvent($0, .data) }
        case .channel(let channelId):
            observe(try? .channel(channelId.text)) {
                ObservedEvent($0, .objects, members: [("channelId", $0.channelId)])
            }
        case .associate(let contextName):
            observe(try? .associate(ioContextName: contextName.text)) { ObservedEvent($0, .data) }
        case .discover: observeRequests(.discover, .data) { .discover($0) }
        case .query: observeRequests(.query, .data) { .query($0) }
        case .update(.core(let coreType)):
            observeRequests(.update(withCoreType: coreType), .objects) { .update($0) }
        case .update(.object(let objectType)):
            observeRequests(try? .update(withObjectType: objectType.text), .objects) { .update($0) }
        case .call(let operation):
            observeRequests(try? .call(operation: operation.text), .data) { .call($0) }
        case .raw(let topic):
            let subscription = try? manager.subscribe(rawTopic: topic.text, onStatus: onStatus, onEnd: onEnd) {
                [weak source] event in source?.say(ObservedEvent(event))
            }
            hold(subscription)
        case .ioValue(let id):
            let agent = ioNodes.agent(ofPoint: id)
            let subscription = agent?.subscribe(ioValuesOf: id, onEnd: onEnd) { [weak source] event in
                source?.say(ObservedEvent(event, actor: id))
            }
            hold(subscription)
            // What every agent observes stands, and goes, with its link.
            hold(agent?.subscribe(.discover, onStatus: onStatus) { _ in })
            // A node that went before the subscription does not end it.
            if ioNodes.actor(id) == nil { onEnd() }
        case .ioState(let id):
            let subscription = ioNodes.agent(ofPoint: id)?.subscribe(ioStateOf: id, onEnd: onEnd) {
                [weak source] event in
                guard let payload = try? Payload(Array("{\(IoPointState(event).members)}".utf8)) else { return }
                source?.say(ObservedEvent("iostate", "ioPointId", id, data: payload))
            }
            hold(subscription)
            if ioNodes.agent(ofPoint: id) == nil { onEnd() }
        case .routing(let id): watch(id)
        case .traffic(let eventTypes):
            do {
                // The handler lives as long as the link, and so does the place that it holds.
                let subscription = try manager.subscribe(traffic: eventTypes, onStatus: onStatus, onEnd: onEnd) {
                    [weak source, link] event in withExtendedLifetime(link) { source?.say(ObservedEvent(event)) }
                }
                hold(subscription)
            } catch {
                // There was no descriptor for the link. Who comes later tries again.
                onFailure()
            }
        case .objects: hold(manager.subscribe(.deadvertise, onStatus: onStatus) { _ in })
        }
    }

    /// Observes events of the network.
    private func observe<Event>(
        _ observation: EventObservation<Event>?,
        _ observed: @escaping @Sendable (Event) -> ObservedEvent
    ) {
        // Names that can't be observed were refused when the request was read.
        guard let observation else { return onEnd() }
        let subscription = manager.subscribe(observation, onStatus: onStatus, onEnd: onEnd) { [weak source] event in
            source?.say(observed(event))
        }
        hold(subscription)
    }

    private func hold(_ subscription: Subscription?) {
        guard let subscription else { return onEnd() }
        source.hold { subscription.cancel() }
    }

    /// Observes what others, or other clients, ask for, so that it can be answered.
    private func observeRequests<Event: RequestEvent>(
        _ observation: EventObservation<Event>?,
        _ subject: ObservedEvent.Subject,
        _ request: @escaping @Sendable (Event) -> EventRequest
    ) {
        observe(observation) { [requests] event in
            requests.insert(request(event), event)
            let operation = (event as? CallEvent)?.operation
            let members = [("correlationId", event.correlationId?.string), ("operation", operation)]
            return ObservedEvent(event, subject, members: members)
        }
    }

    /// Watches the associations of a context: as they are, then each change.
    private func watch(_ id: CoatyUUID) {
        Task { [source, routing] in
            let end = await routing.watch(id) { [weak source] pieces in
                for piece in pieces { source?.say(ObservedEvent("routing", "contextId", id, data: piece)) }
            }
            if let end { source.hold(end) } else { source.end() }
        }
    }
}
