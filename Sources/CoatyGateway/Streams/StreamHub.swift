import Coaty
import DequeModule
import HTTPServer
import Synchronization

/// Everything that is observed for clients: one source for all who want the same, which stays for a while when the last of
/// them has gone, so that they can resume.
final class StreamHub: Sendable {
    /// The most sources, each of which may be a subscription at the broker.
    static let maximumSources = 10_000

    private struct Entry {
        let source: StreamSource
        var users = 0
        /// Tells a time without users from others.
        var absences = 0
    }

    private struct State {
        var entries: [StreamRequest: Entry] = [:]
        /// The sources that nobody uses any more, until when they stay, in order.
        var leaving: Deque<(request: StreamRequest, absence: Int, deadline: ContinuousClock.Instant)> = []
        var isTimed = false
        var isClosed = false
    }

    /// What is kept of the requests that clients have seen, so that they can answer.
    let requests = ObservedRequests()

    private let manager: CommunicationManager
    private let ioNodes: IoNodeRegistry
    private let routing: RoutingAdmin
    private let objects: ObjectRegistry
    private let resumeWindow: Duration
    private let memory: ResumeMemory
    /// What the registry of objects says of all of them.
    private let changes: StreamSource
    private let state = Mutex(State())

    /// - Parameters:
    ///   - resumeWindow: for how long a source stays when nobody uses it.
    ///   - resumeMemory: how many bytes of events are kept for those who resume.
    init(
        manager: CommunicationManager,
        ioNodes: IoNodeRegistry,
        routing: RoutingAdmin,
        objects: ObjectRegistry,
        resumeWindow: Duration,
        resumeMemory: Int
    ) {
        self.manager = manager
        self.ioNodes = ioNodes
        self.routing = routing
        self.objects = objects
        self.resumeWindow = resumeWindow
        memory = ResumeMemory(limit: resumeMemory)
        changes = StreamSource(isResumable: true, memory: memory)
        objects.setChangeHandler { [changes] change in ObservedEvent(change).map(changes.say) }
        // The registry observes the same, so the broker's answer is the same.
        let link = manager.subscribe(.deadvertise, onStatus: { [weak changes] in changes?.update($0) }) { _ in }
        changes.hold { link.cancel() }
    }

    /// Why there is nothing to observe; nil where there is.
    func refusal(of request: StreamRequest) -> Problem? {
        switch request {
        case .ioValue(let id): ioNodes.actor(id) == nil ? Problems.notRegistered("IO actor") : nil
        case .ioState(let id): ioNodes.agent(ofPoint: id) == nil ? Problems.notRegistered("IO point") : nil
        case .routing(let id): routing.isKnown(id) ? nil : Problems.unknownContext(id)
        default: state.withLock { $0.entries.count >= Self.maximumSources } ? Problems.tooManySources : nil
        }
    }

    /// Begins a subscription.
    ///
    /// - Returns: what ends it, to be called once.
    func subscribe(_ lane: Lane, to request: StreamRequest) -> @Sendable () -> Void {
        switch request {
        case .objects:
            objects.withObjects { objects in
                changes.add(lane) { cursor in Self.records(objects, lane, cursor) }
            }
            return { [changes] in changes.remove(lane) }
        case .ioState, .routing:
            // A state is told to each from its beginning.
            let source = StreamSource(isResumable: false, memory: memory)
            source.add(lane)
            source.update(.standing)
            open(source, request)
            return { source.close() }
        default:
            let source = use(request)
            source.add(lane)
            return { [weak self] in
                source.remove(lane)
                self?.leave(request)
            }
        }
    }

    /// Ends what is observed.
    func close() {
        let entries = state.withLock { state in
            state.isClosed = true
            state.leaving = []
            defer { state.entries = [:] }
            return state.entries.values
        }
        for entry in entries { entry.source.end(.withdrawn) }
        changes.end(.withdrawn)
    }

    /// What a subscription is told of the objects that are there.
    private static func records(_ objects: [AliveObject], _ lane: Lane, _ cursor: StreamCursor) -> [EventRecord] {
        let events = objects.filter { lane.kind?.includes($0) ?? true }
            .compactMap { ObservedEvent(ObjectChange(kind: .added, object: $0, previous: nil)) }
            .filter(lane.wants)
        return events.enumerated().map { index, event in
            // Who has not got all of it can't resume behind it.
            EventRecord(.event(event), cursor: index == events.count - 1 ? cursor : nil)
        }
    }

    // MARK: - Sources

    private func use(_ request: StreamRequest) -> StreamSource {
        let (source, isNew) = state.withLock { state in
            if var entry = state.entries[request] {
                entry.users += 1
                state.entries[request] = entry
                return (entry.source, false)
            }
            let source = StreamSource(isResumable: true, memory: memory)
            state.entries[request] = Entry(source: source, users: 1)
            return (source, true)
        }
        // Not under the lock: the link may answer at once.
        if isNew { open(source, request) }
        return source
    }

    private func leave(_ request: StreamRequest) {
        let (unused, isToBeTimed) = state.withLock { state -> (StreamSource?, Bool) in
            guard var entry = state.entries[request] else { return (nil, false) }
            entry.users -= 1
            guard entry.users == 0 else {
                state.entries[request] = entry
                return (nil, false)
            }
            guard resumeWindow > .zero else {
                state.entries[request] = nil
                return (entry.source, false)
            }
            entry.absences += 1
            state.entries[request] = entry
            state.leaving.append((request, entry.absences, .now + resumeWindow))
            defer { state.isTimed = true }
            return (nil, !state.isTimed)
        }
        unused?.close()
        guard isToBeTimed else { return }
        Task { [weak self] in
            while let deadline = self?.closeUnused() { try? await Task.sleep(until: deadline, clock: .continuous) }
        }
    }

    /// Closes the sources that nobody has come back to.
    ///
    /// - Returns: when to look again; nil where none is left.
    private func closeUnused() -> ContinuousClock.Instant? {
        let (sources, next) = state.withLock { state in
            var sources: [StreamSource] = []
            while let (request, absence, deadline) = state.leaving.first, deadline <= .now {
                state.leaving.removeFirst()
                guard let entry = state.entries[request], entry.users == 0, entry.absences == absence else { continue }
                state.entries[request] = nil
                sources.append(entry.source)
            }
            state.isTimed = !state.leaving.isEmpty
            return (sources, state.leaving.first?.deadline)
        }
        for source in sources { source.close() }
        return next
    }

    /// A source that ended by itself is not there for those who come later.
    private func end(_ source: StreamSource, _ request: StreamRequest) {
        state.withLock { state in
            if state.entries[request]?.source === source { state.entries[request] = nil }
        }
        source.end(.withdrawn)
    }

    private func open(_ source: StreamSource, _ request: StreamRequest) {
        let onEnd: @Sendable () -> Void = { [weak self, weak source] in
            if let source { self?.end(source, request) }
        }
        switch request {
        case .advertise(.core(let coreType)):
            observe(.advertise(withCoreType: coreType), source, onEnd) { ObservedEvent($0, .objects) }
        case .advertise(.object(let objectType)):
            observe(try? .advertise(withObjectType: objectType.text), source, onEnd) { ObservedEvent($0, .objects) }
        case .deadvertise: observe(.deadvertise, source, onEnd) { ObservedEvent($0, .data) }
        case .channel(let channelId):
            observe(try? .channel(channelId.text), source, onEnd) {
                ObservedEvent($0, .objects, members: [("channelId", $0.channelId)])
            }
        case .associate(let contextName):
            observe(try? .associate(ioContextName: contextName.text), source, onEnd) { ObservedEvent($0, .data) }
        case .discover: observeRequests(.discover, source, onEnd, .data) { .discover($0) }
        case .query: observeRequests(.query, source, onEnd, .data) { .query($0) }
        case .update(.core(let coreType)):
            observeRequests(.update(withCoreType: coreType), source, onEnd, .objects) { .update($0) }
        case .update(.object(let objectType)):
            observeRequests(try? .update(withObjectType: objectType.text), source, onEnd, .objects) { .update($0) }
        case .call(let operation):
            observeRequests(try? .call(operation: operation.text), source, onEnd, .data) { .call($0) }
        case .raw(let topic):
            let status: @Sendable (SubscriptionStatus) -> Void = { [weak source] in source?.update($0) }
            let subscription = try? manager.subscribe(rawTopic: topic.text, onStatus: status, onEnd: onEnd) {
                [weak source] event in source?.say(ObservedEvent(event))
            }
            hold(subscription, source, onEnd)
        case .ioValue(let id):
            source.update(.standing)
            let subscription = ioNodes.agent(ofPoint: id)?.subscribe(ioValuesOf: id, onEnd: onEnd) {
                [weak source] event in source?.say(ObservedEvent(event, actor: id))
            }
            hold(subscription, source, onEnd)
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
        case .objects: break
        }
    }

    /// Observes events of the network.
    private func observe<Event>(
        _ observation: EventObservation<Event>?,
        _ source: StreamSource,
        _ onEnd: @escaping @Sendable () -> Void,
        _ observed: @escaping @Sendable (Event) -> ObservedEvent
    ) {
        // Names that can't be observed were refused when the request was read.
        guard let observation else { return onEnd() }
        let status: @Sendable (SubscriptionStatus) -> Void = { [weak source] in source?.update($0) }
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
        _ onEnd: @escaping @Sendable () -> Void,
        _ subject: ObservedEvent.Subject,
        _ request: @escaping @Sendable (Event) -> ObservedRequests.Request
    ) {
        observe(observation, source, onEnd) { [requests] event in
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
            if let end { source.hold(end) } else { source.end(.withdrawn) }
        }
    }
}

extension Problems {
    static let tooManySources = Problem(
        type: typePrefix + "too-many-subscriptions",
        title: "Too many subscriptions",
        status: 503,
        detail: "The gateway observes as much as it can."
    )

    static let subscriptionRefused = Problem(
        type: typePrefix + "subscription-refused",
        title: "Subscription refused",
        status: 403,
        detail: "The broker does not let the gateway observe this."
    )
}
