import Base
import Coaty
import Network

/// The origin of a feed's events: a subscription of an agent, or the association watch of an IO context.
struct FeedUpstream {
    private let feed: Feed
    private let request: Observation
    private let manager: CommunicationManager
    private let ioNodes: IoNodeRegistry
    private let routing: RoutingAdmin
    private let objects: ObjectRegistry
    private let requests: ObservedRequests
    private let rawSessions: RawSessions
    private let trafficCounts: MessageCounts
    private let client: ClientKey
    private let session: TrafficSessions.Place?
    private let onEnd: @Sendable () -> Void
    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    private let onGap: @Sendable (GapReason) -> Void
    private let onFailure: @Sendable () -> Void

    /// - Parameters:
    ///   - client: the client whose subscription opens the feed.
    ///   - session: counts the feed's separate session, if it has one.
    init(
        hub: FeedHub,
        feed: Feed,
        request: Observation,
        client: ClientKey,
        session: TrafficSessions.Place? = nil
    ) {
        self.feed = feed
        self.request = request
        self.client = client
        self.session = session
        (manager, ioNodes, routing) = (hub.manager, hub.ioNodes, hub.routing)
        (objects, requests, rawSessions) = (hub.objects, hub.requests, hub.rawSessions)
        trafficCounts = hub.trafficSessions.messageCounts
        let onEnd: @Sendable () -> Void = { [weak hub, weak feed] in
            if let feed { hub?.end(feed, request) }
        }
        self.onEnd = onEnd
        onFailure = { [weak hub, weak feed] in
            if let feed { hub?.end(feed, request, Problems.tooManyFeeds) }
        }
        onGap = { [weak feed] reason in
            switch reason {
            case .missed: feed?.noteGap()
            case .invalid: feed?.noteInvalid()
            }
        }
        onStatus = { [weak feed] status in
            feed?.update(status)
            // The next subscription creates a new feed, which sends the request to the broker again.
            if status == .refused { onEnd() }
        }
    }

    func begin() {
        switch request {
        case .advertise(.core(let coreType)):
            observe(.advertise(withCoreType: coreType)) { event in
                { ObservedEvent(event, .objects, .objects(.advertise)) }
            }
        case .advertise(.object(let objectType)):
            observe(try? .advertise(withObjectType: objectType.text)) { event in
                { ObservedEvent(event, .objects, .objects(.advertise)) }
            }
        case .deadvertise:
            hold(
                manager.subscribe(.deadvertise, onStatus: onStatus, onGap: onGap, onEnd: onEnd) {
                    [weak feed, objects] event in
                    // The current objects. They are kept as long as the event.
                    let access = EventAccess(event.data, objects)
                    let size = PendingEvent.size(of: event) + access.size
                    let hash = feed?.hash(of: event)
                    feed?.deliver(PendingEvent(size: size, hash: hash) { ObservedEvent(event, .data, access) })
                }
            )
        case .channel(let channelId):
            observe(try? .channel(channelId.text), name: channelId.text) { event in
                { ObservedEvent(event, .objects, .channel(channelId), members: [("channelId", event.channelId)]) }
            }
        case .associate(let contextName):
            observe(try? .associate(ioContextName: contextName.text)) { event in
                { ObservedEvent(event, .data, .named(.associate, .context(contextName))) }
            }
        case .discover: observeRequests(.discover, .data, .types(.discover))
        case .query: observeRequests(.query, .data, .types(.query))
        case .update(.core(let coreType)):
            observeRequests(.update(withCoreType: coreType), .objects, .objects(.update))
        case .update(.object(let objectType)):
            observeRequests(try? .update(withObjectType: objectType.text), .objects, .objects(.update))
        case .call(let operation):
            observeRequests(try? .call(operation: operation.text), .data, .call(operation))
        case .raw(let topic):
            do {
                let place = try rawSessions.place(for: client)
                let subscription = try place.session.subscribe(
                    topic.text,
                    onStatus: onStatus,
                    onGap: onGap,
                    onEnd: onEnd
                ) { [weak feed] event in
                    let size = event.payload.count + PendingEvent.size(ofNames: event.topic)
                    let retention = (topic: WireName(event.topic), isRetained: event.isRetained)
                    feed?.deliver(PendingEvent(size: size, retention: retention) { ObservedEvent(event) })
                }
                feed.setRetainedRequest { [weak session = place.session] in session?.requestAgain(topic.text) }
                feed.hold { withExtendedLifetime(place) { subscription.cancel() } }
            } catch {
                // No file descriptor was left for the session. The next subscription tries again.
                onFailure()
            }
        case .ioValue(let id):
            let agent = ioNodes.agent(ofPoint: id)
            let subscription = agent?.subscribe(ioValuesOf: id, onEnd: onEnd, onGap: onGap) {
                [weak feed] event in
                feed?.deliver(PendingEvent(size: 2 * event.bytes.count) { ObservedEvent(event, actor: id) })
            }
            hold(subscription)
            // Every agent observes Discover events, so this subscription reports the state of the agent's session.
            hold(agent?.subscribe(.discover, onStatus: onStatus, onGap: onGap) { _ in })
            // An IO node that was removed before the subscription does not end the subscription.
            if ioNodes.actor(id) == nil { onEnd() }
        case .ioState(let id):
            let subscription = ioNodes.agent(ofPoint: id)?.subscribe(ioStateOf: id, onEnd: onEnd) {
                [weak feed] event in
                guard let payload = try? Payload(Array("{\(IoPointState(event).members)}".utf8)) else { return }
                feed?.deliver(ObservedEvent("iostate", "ioPointId", id, data: payload))
            }
            hold(subscription)
            if ioNodes.agent(ofPoint: id) == nil { onEnd() }
        case .routing(let id): watch(routing.known(id))
        case .traffic(let eventTypes):
            do {
                // The handler lives as long as the session, so the session counts until then.
                let subscription = try manager.subscribe(
                    traffic: eventTypes,
                    messageCounts: trafficCounts,
                    onStatus: onStatus,
                    onGap: onGap,
                    onEnd: onEnd
                ) { [weak feed, session, objects, ioNodes] event in
                    withExtendedLifetime(session) {
                        let access = EventAccess(event, objects, ioNodes)
                        let address = event.address
                        let names = PendingEvent.size(
                            ofNames: address.sourceId.string,
                            address.correlationId?.string,
                            address.name?.text,
                            event.label
                        )
                        let size = (event.payload?.footprint ?? event.bytes.count) + names + access.size
                        feed?.deliver(PendingEvent(size: size) { ObservedEvent(event, access) })
                    }
                }
                hold(subscription)
            } catch {
                // No file descriptor was left for the session. The next subscription tries again.
                onFailure()
            }
        case .objects:
            hold(manager.subscribe(.deadvertise, onStatus: onStatus, onGap: onGap) { _ in })
            // The registry delivers the objects. These observations only report gaps.
            for coreType in ObjectRegistry.coreTypes {
                hold(manager.subscribe(.advertise(withCoreType: coreType), onGap: onGap) { _ in })
            }
        }
    }

    /// Subscribes to Coaty events; ends the feed if there is no observation.
    ///
    /// - Parameters:
    ///   - name: the name of the events, for their hashes.
    ///   - size: returns the number of bytes that are kept for an event in addition to its payload and its sender.
    ///   - observed: called on the session's thread; returns the function that a worker calls for the event.
    private func observe<Event: CommunicationEvent>(
        _ observation: EventObservation<Event>?,
        name: String? = nil,
        size: @escaping @Sendable (Event) -> Int = { _ in 0 },
        _ observed: @escaping @Sendable (Event) -> @Sendable () -> ObservedEvent
    ) {
        // Not expected: invalid names were rejected when the observation was parsed.
        guard let observation else { return onEnd() }
        let subscription = manager.subscribe(observation, onStatus: onStatus, onGap: onGap, onEnd: onEnd) {
            [weak feed] event in
            guard let feed else { return }
            let size = PendingEvent.size(of: event) + size(event)
            feed.deliver(PendingEvent(size: size, hash: feed.hash(of: event, name: name), make: observed(event)))
        }
        hold(subscription)
    }

    private func hold(_ subscription: Subscription?) {
        guard let subscription else { return onEnd() }
        feed.hold { subscription.cancel() }
    }

    /// Subscribes to requests of agents and other clients, and keeps them so that clients can answer.
    private func observeRequests<Event: RequestEvent>(
        _ observation: EventObservation<Event>?,
        _ subject: ObservedEvent.Subject,
        _ access: EventAccess
    ) {
        observe(observation, size: { PendingEvent.size(ofNames: $0.correlationId?.string) }) { [requests] event in
            requests.insert(event)
            // The time for answers starts now.
            let delivered = event.correlationId.map {
                DeliveredRequest(correlationId: $0, isDiscover: Event.eventType == .discover)
            }
            return {
                let operation = (event as? CallEvent)?.operation
                let members = [("correlationId", event.correlationId?.string), ("operation", operation)]
                var observed = ObservedEvent(event, subject, access, members: members)
                observed.request = delivered
                return observed
            }
        }
    }

    /// Watches the associations of an IO context: delivers the current ones, then each change.
    private func watch(_ id: CoatyUUID) {
        Task { [feed, routing] in
            let end = await routing.watch(id) { [weak feed] pieces in
                for piece in pieces { feed?.deliver(ObservedEvent("routing", "contextId", id, data: piece)) }
            }
            if let end { feed.hold(end) } else { feed.end() }
        }
    }
}
