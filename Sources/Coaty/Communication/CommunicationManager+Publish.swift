import Synchronization

extension CommunicationManager {
    /// Advertises an object: to its core type and, unless it has the core type's default object type, to its object
    /// type.
    ///
    /// If the object's parent is the agent's identity or one of its IO nodes, the agent advertises it again after each
    /// reconnect until it is deadvertised: see ``ObjectLifecycleController``.
    ///
    /// - Returns: whether the event is sent now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishAdvertise(_ event: AdvertiseEvent) throws(CommunicationError) -> Delivery {
        try publishAdvertise(event, holding: nil, keeping: nil, isKept: parent(ofShared: event.header) != nil)
    }

    /// Advertises an object like ``publishAdvertise(_:)``, but the caller decides whether the agent advertises it again
    /// after each reconnect, and bounds these objects.
    ///
    /// - Parameters:
    ///   - holding: released when the event is written or given up.
    ///   - keeping: released when the agent no longer advertises the object again after a reconnect; nil if it never
    ///     does.
    package func publishAdvertise(
        _ event: AdvertiseEvent,
        holding: (any PublicationHolder)?,
        keeping: (any PublicationHolder)?
    ) throws(CommunicationError) -> Delivery {
        try publishAdvertise(event, holding: holding, keeping: keeping, isKept: keeping != nil)
    }

    private func publishAdvertise(
        _ event: AdvertiseEvent,
        holding: (any PublicationHolder)?,
        keeping: (any PublicationHolder)?,
        isKept: Bool
    ) throws(CommunicationError) -> Delivery {
        try session.publish(advertisement(event, keeping: keeping, isKept: isKept), holding: holding)
    }

    /// Publishes an update that this agent makes itself, for those who observe it, and advertises the updated object:
    /// both or nothing.
    ///
    /// - Parameters:
    ///   - holding: released when the events are written or given up.
    ///   - correlationId: the id of the update.
    /// - Returns: the update to complete.
    /// - Throws: ``CommunicationError`` or ``PayloadError``
    func publish(
        _ update: UpdateEvent,
        as correlationId: CoatyUUID,
        advertising event: AdvertiseEvent,
        holding: (any PublicationHolder)?
    ) throws -> UpdateEvent {
        let updates = update.names.map { name in
            publication(.update, name: name, correlationId: correlationId, update.payload)
        }
        let address = EventAddress(
            .update,
            name: update.names.first ?? nil,
            namespace: namespace,
            sourceId: identityId,
            correlationId: correlationId
        )
        let published = try UpdateEvent(payload: update.payload, address: address).answered(by: self)
        let isKept = parent(ofShared: event.header) != nil
        _ = try session.publish(updates + advertisement(event, keeping: nil, isKept: isKept), holding: holding)
        return published
    }

    private func advertisement(
        _ event: AdvertiseEvent,
        keeping: (any PublicationHolder)?,
        isKept: Bool
    ) -> [Publication] {
        let header = event.header
        if isKept { session.sharesObjects.store(true, ordering: .relaxed) }
        var publications: [Publication] = []
        for name in header.names {
            var sharing: Sharing?
            if isKept {
                sharing = .advertises(header.objectId, parentId: header.parentObjectId, isObjectType: name.isObjectType)
            } else if session.sharesObjects.load(ordering: .relaxed) {
                sharing = .replaces(header.objectId)
            }
            var publication = publication(.advertise, name: name, event.payload, sharing: sharing)
            publication.keeping = keeping
            publications.append(publication)
        }
        return publications
    }

    /// No longer advertises objects again that another agent has deadvertised, nor their children.
    package func forget(deadvertised ids: [CoatyUUID]) { session.core.withLock { $0.advertised.end(ids) } }

    /// No longer advertises an object again that another agent has advertised since.
    package func forget(replaced id: CoatyUUID) { session.core.withLock { _ = $0.advertised.remove(id) } }

    /// Advertises the latest version of an object now that the agent would advertise again after a reconnect.
    package func advertiseAgain(_ id: CoatyUUID) throws(CommunicationError) {
        let publications = session.core.withLock { $0.advertised.advertisements(of: id) }
        if !publications.isEmpty { _ = try session.publish(publications, holding: nil) }
    }

    /// Returns whether ``publishAdvertise(_:)`` would advertise an object again after each reconnect.
    package func keeps(_ object: ObjectHeader) -> Bool { parent(ofShared: object) != nil }

    /// Returns the id of the parent of an object that the farewell withdraws; nil for other objects, and for log
    /// objects, which report past events.
    private func parent(ofShared object: ObjectHeader) -> CoatyUUID? {
        object.coreType == .Log ? nil : object.parentObjectId.flatMap { ownIds.contains($0) ? $0 : nil }
    }

    /// Deadvertises objects.
    ///
    /// - Returns: whether the event is sent now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishDeadvertise(_ event: DeadvertiseEvent) throws(CommunicationError) -> Delivery {
        try publishDeadvertise(event, holding: nil)
    }

    /// Deadvertises objects like ``publishDeadvertise(_:)``.
    ///
    /// - Parameter holding: released when the event is written or given up.
    package func publishDeadvertise(
        _ event: DeadvertiseEvent,
        holding: (any PublicationHolder)?
    ) throws(CommunicationError) -> Delivery {
        let publication = publication(.deadvertise, event.payload, sharing: .ends(event.data.objectIds))
        return try session.publish([publication], holding: holding)
    }

    /// Deadvertises objects of an agent that has left.
    ///
    /// - Parameter holding: released when the event is written, withdrawn or given up.
    /// - Returns: a function that withdraws the event if it is not yet handed over, and returns whether it did.
    package func publishDeadvertise(
        departed ids: [CoatyUUID],
        holding: any PublicationHolder
    ) throws -> @Sendable () -> Bool {
        let (id, event) = (session.nextId(), try DeadvertiseEvent.with(objectIds: ids))
        let publication = publication(.deadvertise, event.payload, request: id, sharing: .ends(ids))
        _ = try session.publish([publication], holding: holding)
        return { [session] in session.withdraw(request: id, onlyIfUnsent: true) }
    }

    /// Removes and returns the ids of the objects that the last stop should have deadvertised, but could not because
    /// the agent was not connected: those of deferred Deadvertise events, and those of the farewell if the agent was
    /// announced. If the broker survived, it has published the last will, so that others may know some of it.
    package func takeUndelivered() -> [CoatyUUID] {
        session.core.withLock { core in
            defer { core.undelivered = [] }
            return core.undelivered
        }
    }

    /// Delivers objects through a channel.
    ///
    /// - Returns: whether the event is sent now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishChannel(_ event: ChannelEvent) throws(CommunicationError) -> Delivery {
        try publishChannel(event, holding: nil)
    }

    /// Delivers objects through a channel like ``publishChannel(_:)``.
    ///
    /// - Parameter holding: released when the event is written or given up.
    package func publishChannel(
        _ event: ChannelEvent,
        holding: (any PublicationHolder)?
    ) throws(CommunicationError) -> Delivery {
        let publication = publication(.channel, name: .name(WireName(event.channelId)), event.payload)
        return try session.publish([publication], holding: holding)
    }

    /// Publishes raw bytes on a topic that Coaty does not use.
    ///
    /// - Returns: whether the event is sent now or after the next connect.
    /// - Throws: ``CommunicationError/invalidTopic(_:)`` if the binding does not accept the topic;
    ///   ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishRaw(_ event: RawEvent) throws(CommunicationError) -> Delivery {
        try publishRaw(event, holding: nil)
    }

    /// Publishes raw bytes like ``publishRaw(_:)``.
    ///
    /// - Parameter holding: released when the event is written or given up.
    package func publishRaw(
        _ event: RawEvent,
        holding: (any PublicationHolder)?
    ) throws(CommunicationError) -> Delivery {
        guard session.binding.isPublishable(rawTopic: event.topic) else { throw .invalidTopic(event.topic) }
        let destination = Publication.Destination.raw(topic: event.topic, isRetained: event.shouldRetain)
        return try session.publish([Publication(destination, payload: event.payload)], holding: holding)
    }

    /// Publishes a value of an IO source on the route of its associations. Does nothing if the source is not
    /// associated.
    ///
    /// - Returns: whether the value is sent now or after the next connect; nil if the source is not associated.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishIoValue(_ event: IoValueEvent) throws(CommunicationError) -> Delivery? {
        guard let ioSourceId = event.ioSourceId, let route = ioAssociations.route(ofSource: ioSourceId) else {
            return nil
        }
        return try session.publish([Publication(.ioRoute(route), payload: event.bytes)])
    }

    /// Associates an IO source with an IO actor, or dissolves their association.
    ///
    /// - Returns: whether the event is sent now or after the next connect.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    @discardableResult
    public func publishAssociate(_ event: AssociateEvent) throws(CommunicationError) -> Delivery {
        try session.publish([publication(.associate, name: .name(WireName(event.ioContextName)), event.payload)])
    }

    // MARK: - Requests

    /// Asks for objects and returns a stream of the matching answers as they arrive.
    ///
    /// The request lasts as long as the stream: until the time limit, until the stream is released, until the broker
    /// refuses the subscription of the answers, or until the communication manager stops. A request that is published
    /// while the agent is not connected is queued for the next connection. If it ends before it was sent, it is
    /// withdrawn. A request that was sent continues when the connection is lost: answers that arrive while the agent is
    /// not connected are missed; answers that arrive after the next connect are delivered.
    ///
    /// - Parameters:
    ///   - event: the request.
    ///   - timeLimit: how long to wait for answers; nil waits until the stream is released.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishDiscover(
        _ event: DiscoverEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> EventStream<ResolveEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Queries objects and returns a stream of the matching answers as they arrive. The request lasts as in
    /// ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishQuery(
        _ event: QueryEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> EventStream<RetrieveEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Requests an update of an object and returns a stream of the matching answers as they arrive. The request lasts
    /// as in ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishUpdate(
        _ event: UpdateEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> EventStream<CompleteEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Calls a remote operation and returns a stream of the answers as they arrive. The request lasts as in
    /// ``publishDiscover(_:timeLimit:)``.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publishCall(
        _ event: CallEvent,
        timeLimit: Duration? = nil
    ) throws(CommunicationError) -> EventStream<ReturnEvent> {
        try responses(to: event, timeLimit: timeLimit)
    }

    /// Publishes a request and passes each matching answer to a handler as it arrives.
    ///
    /// The request lasts until the returned ``PendingRequest`` is cancelled or released, or the communication manager
    /// stops. A request that is published while the agent is not connected is queued for the next connection; its
    /// `delivery` reports this.
    ///
    /// - Parameters:
    ///   - event: the request.
    ///   - onEnd: called once, as soon as answers may be missed: when the broker refuses the response subscription,
    ///     when the communication manager stops, or when a connection is lost that was up when the request was
    ///     published or came up later. The request continues until it is cancelled, and answers that arrive
    ///     nevertheless are delivered. Must not block.
    ///   - handler: called for each answer on the binding's thread; must not block.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func publish<Request: RequestEvent>(
        _ event: Request,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Request.Response) -> Void
    ) throws(CommunicationError) -> PendingRequest {
        try publish(event, holding: nil, onEnd: onEnd, handler: handler)
    }

    /// Publishes a request like ``publish(_:onEnd:handler:)``.
    ///
    /// - Parameter holding: released when the event is written or given up.
    package func publish<Request: RequestEvent>(
        _ event: Request,
        holding: (any PublicationHolder)?,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Request.Response) -> Void
    ) throws(CommunicationError) -> PendingRequest {
        let end = RequestEnd(onEnd)
        let onStatus = { @Sendable (status: SubscriptionStatus) in end.update(status) }
        return try publish(event, end, holding: holding, onStatus: onEnd == nil ? nil : onStatus, handler: handler)
    }

    private func responses<Request: RequestEvent>(
        to event: Request,
        timeLimit: Duration?
    ) throws(CommunicationError) -> EventStream<Request.Response> {
        let size = { @Sendable (response: Request.Response) in response.payload.footprint }
        return try stream(timeLimit: timeLimit, size: size) { (onEnd, handler) throws(CommunicationError) in
            let end = RequestEnd { onEnd(.stopped) }
            let onStatus = { @Sendable (status: SubscriptionStatus) in
                if status == .refused { onEnd(.refused) }
            }
            let request = try publish(event, end, holding: nil, onStatus: onStatus, handler: handler)
            return { request.cancel() }
        }
    }

    private func publish<Request: RequestEvent>(
        _ event: Request,
        _ end: RequestEnd,
        holding: (any PublicationHolder)?,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)?,
        handler: @escaping @Sendable (Request.Response) -> Void
    ) throws(CommunicationError) -> PendingRequest {
        let responses = session.takeCorrelationId(for: Request.Response.eventType)
        let correlationId = responses.correlationId
        let names = event.names
        // An agent that observes both names of a request gives each answer twice.
        let answers = names.count > 1 ? Answers() : nil
        let dropLog = dropLog
        let subscription = subscribe(
            responsesTo: correlationId,
            onStatus: onStatus,
            onEnd: { end.reach() }
        ) { (response: Request.Response) in
            do throws(PayloadError) {
                try event.checkFits(response)
            } catch {
                dropLog.note("a response that does not fit", label: response.sourceId?.string ?? "", error: error)
                return
            }
            if answers?.isNew(response) ?? true { handler(response) }
        }
        let id = session.nextId()
        let publications = names.map { name in
            publication(Request.eventType, name: name, correlationId: correlationId, event.payload, request: id)
        }
        let delivery = try session.publish(publications, holding: holding, responses: responses)
        let request = PendingRequest(
            delivery: delivery,
            onWithdraw: { [session] in session.withdraw(request: id, onlyIfUnsent: true) },
            onCancel: { [session] in
                _ = session.withdraw(request: id, onlyIfUnsent: false)
                subscription.cancel()
            }
        )
        if end.requestIsPublished() { request.cancel() }
        return request
    }

    // MARK: - Publications

    /// Returns a publication of an event of the agent.
    func publication(
        _ eventType: CommunicationEventType,
        name: EventName? = nil,
        correlationId: CoatyUUID? = nil,
        _ payload: Payload,
        request: UInt64? = nil,
        sharing: Sharing? = nil
    ) -> Publication {
        let address = EventAddress(
            eventType,
            name: name,
            namespace: namespace,
            sourceId: identityId,
            correlationId: correlationId
        )
        return Publication(.event(address), payload: payload.bytes, request: request, sharing: sharing)
    }
}

/// Calls a request's `onEnd` once, and never before the request was published.
private final class RequestEnd: Sendable {
    private struct State {
        var isPublished = false
        var isReached = false
        var isStopped = false
        var hasStatus = false
    }

    private let onEnd: (@Sendable () -> Void)?
    private let state = Mutex(State())

    init(_ onEnd: (@Sendable () -> Void)?) { self.onEnd = onEnd }

    /// Handles the status of the response subscription.
    func update(_ status: SubscriptionStatus) {
        let isLost = state.withLock { state in
            defer { state.hasStatus = true }
            switch status {
            case .standing: return false
            case .refused: return true
            // A request that is made while the agent is not connected does not end because of this status.
            case .offline: return state.hasStatus || state.isPublished
            }
        }
        if isLost { reach(isStop: false) }
    }

    /// - Returns: whether the communication manager stopped earlier.
    func requestIsPublished() -> Bool {
        let (isDue, isStopped) = state.withLock { state in
            state.isPublished = true
            return (state.isReached, state.isStopped)
        }
        if isDue { onEnd?() }
        return isStopped
    }

    func reach(isStop: Bool = true) {
        let isDue = state.withLock { state in
            if isStop { state.isStopped = true }
            defer { state.isReached = true }
            return state.isPublished && !state.isReached
        }
        if isDue { onEnd?() }
    }
}

/// The answers to a request with two names whose second copy has not arrived. Copies have the same content: an agent
/// that writes the time into its answers, for example, gives two.
private final class Answers: Sendable {
    private struct Answer: Hashable {
        let sourceId: CoatyUUID?
        let contentHash: Int
    }

    /// Maximum number of answers whose copy is recognised. All copies of further answers are delivered.
    static let limit = 10_000

    private let uncopied = Mutex<Set<Answer>>([])

    /// Returns false for the copy of an earlier answer.
    func isNew(_ response: some CommunicationEvent) -> Bool {
        let answer = Answer(sourceId: response.sourceId, contentHash: response.payload.bytes.hashValue)
        return uncopied.withLock { uncopied in
            guard uncopied.remove(answer) == nil else { return false }
            if uncopied.count < Self.limit { uncopied.insert(answer) }
            return true
        }
    }
}
