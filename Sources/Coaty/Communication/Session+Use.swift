/// Publishing and subscribing over a session.
extension Session {
    // MARK: - Publishing

    /// Queues publications, all or none.
    ///
    /// - Parameters:
    ///   - holding: released when all of them are written or given up.
    ///   - responses: the subscription of a request.
    func publish(
        _ publications: [Publication],
        holding: (any PublicationHolder)? = nil,
        responses: ResponseSubscription? = nil
    ) throws(CommunicationError) -> Delivery {
        try checkSize(publications)
        var publications = publications
        if let holding {
            let client = holding.client
            for index in publications.indices {
                publications[index].holding = holding
                publications[index].client = client
            }
        }
        // The subscription of a request was added without waking the binding. The binding is also woken if the outbox
        // is full, because others may have added operations behind the subscription.
        var mustWake = responses != nil
        defer { if mustWake { binding.wake() } }
        return try core.withLock { core throws(CommunicationError) in
            if !core.properties.isRetainAvailable, publications.contains(where: \.isRetained) {
                throw .retainUnavailable
            }
            var wasEmpty = false
            if try !quarantine(publications, &core) { wasEmpty = try core.outbox.publish(publications) }
            for publication in publications { core.advertised.queued(publication) }
            guard core.state.sends else {
                core.counts.deferred += publications.count
                return .deferred
            }
            if wasEmpty { mustWake = true }
            if let responses { refillReserve(responses, &core) }
            return .sent
        }
    }

    private func checkSize(_ publications: [Publication]) throws(CommunicationError) {
        let limit = maximumPacketSize.load(ordering: .relaxed)
        guard limit < .max else { return }
        for publication in publications {
            let size = binding.packetSize(of: publication)
            guard size <= limit else { throw .exceedsBrokerLimit(size: size, limit: limit) }
        }
    }

    /// Stores what the broker has stated about a connection.
    func note(_ properties: ConnectionProperties, life: Int) {
        core.withLock { core in
            guard core.state.life == life else { return }
            if properties != core.properties { core.suspects.forgetAll() }
            core.properties = properties
            maximumPacketSize.store(properties.maximumPacketSize ?? .max, ordering: .relaxed)
        }
    }

    /// Returns a number that is unique in the session.
    func nextId() -> UInt64 { core.withLock { $0.nextId() } }

    /// Withdraws the remaining publications of a request from the outbox.
    ///
    /// - Parameter onlyIfUnsent: whether to keep a request that was partly handed over.
    /// - Returns: whether no part of it was handed over to the binding.
    func withdraw(request: UInt64, onlyIfUnsent: Bool) -> Bool {
        let (isUnsent, room) = core.withLock { core in
            var isUnsent = core.outbox.isUnsent(request: request)
            if isUnsent || !onlyIfUnsent { core.outbox.withdraw(request: request) }
            if core.quarantine?.session.withdraw(request: request, onlyIfUnsent: onlyIfUnsent) == true {
                isUnsent = true
            }
            return (isUnsent, core.takeRoom())
        }
        for action in room { action() }
        return isUnsent
    }

    /// Removes the oldest unwritten publications.
    func publicationsDone(_ count: Int, areWritten: Bool, life: Int) {
        if let agent = configuration.guarded { return trialsDone(count, areWritten: areWritten, life, guarding: agent) }
        let (room, refused, quarantine) = core.withLock { core -> ([@Sendable () -> Void], Int?, Quarantine?) in
            guard core.state.life == life else { return ([], nil, nil) }
            var areKept = true
            for _ in 0..<count {
                guard let publication = core.outbox.publicationDone() else { break }
                guard areWritten else {
                    // It would be refused again on each connection.
                    if let id = publication.sharedObjectId { core.advertised.remove(id) }
                    core.trial = nil
                    continue
                }
                core.suspects.written(publication)
                core.counts.published += 1
                configuration.messageCounts.countPublished()
                if !core.advertised.written(publication) { areKept = false }
            }
            // It is the last one.
            if core.outbox.beingWritten == nil { core.trial?.isWritten = true }
            return (core.takeRoom(), areKept ? nil : core.advertised.refused, core.quarantine)
        }
        if let refused { log.reportNotShared(count: refused) }
        for action in room { action() }
        quarantine?.session.binding.wake()
    }

    /// Records that the broker has read the oldest written publications.
    func publicationsRead(_ count: Int, life: Int) {
        if let agent = configuration.guarded { return trialPassed(life, guarding: agent) }
        let quarantine = core.withLock { core -> Quarantine? in
            guard core.state.life == life else { return nil }
            core.suspects.confirmed(count)
            core.passOwnTrial()
            return core.quarantine
        }
        quarantine?.session.binding.wake()
    }

    /// Calls an action once, as soon as fewer publications and bytes are queued.
    ///
    /// - Parameters:
    ///   - publications: the upper limit of the number of queued publications, exclusive.
    ///   - bytes: the upper limit of the number of queued bytes, exclusive.
    ///   - action: called on the calling thread if there is room now, otherwise on the binding's thread. Not called
    ///     when the session ends. Must not block.
    /// - Returns: a subscription that discards the action when it is released.
    func whenRoom(below publications: Int, bytes: Int, _ action: @escaping @Sendable () -> Void) -> Subscription {
        let request = RoomRequest(publications: publications, bytes: bytes, action: action)
        let id = core.withLock { core -> UInt64? in
            guard !core.outbox.hasRoom(for: request) else { return nil }
            let id = core.nextId()
            core.waitingForRoom[id] = request
            return id
        }
        guard let id else {
            action()
            return Subscription {}
        }
        return Subscription { [weak self] in
            let forgotten = self?.core.withLock { $0.waitingForRoom.removeValue(forKey: id) }
            withExtendedLifetime(forgotten) {}
        }
    }

    // MARK: - Subscribing

    /// Adds an observer.
    ///
    /// - Parameters:
    ///   - wakes: whether to wake the binding. If not, the caller wakes it by the publication that follows, so that
    ///     both leave together.
    ///   - onGap: called when the observer may have missed events although the connection is up.
    func subscribe<Event: Sendable>(
        _ selector: EventSelector,
        wakes: Bool = true,
        decode: @escaping Dispatcher<Event>.Decoder,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)? = nil,
        onGap: (@Sendable (GapReason) -> Void)? = nil,
        onEnd: (@Sendable () -> Void)? = nil,
        handler: @escaping @Sendable (Event) -> Void
    ) -> Subscription {
        // A request must be notified of the end of each connection.
        let isRequest = if case .responses = selector { true } else { false }
        let status = onStatus.map { StatusObserver(reportsEachLoss: isRequest, $0) }
        let id = nextId()
        var mustWake = false
        func add() -> SubscriptionStatus? {
            core.withLock { core in
                let observer = Dispatcher<Event>.Observer(
                    id: id,
                    handler: handler,
                    onGap: onGap,
                    onEnd: onEnd,
                    isPermanent: false,
                    status: status
                )
                let (request, status) = core.subscriptions.add(
                    selector,
                    observer,
                    isConnected: core.state.sends,
                    isGranted: core.reserve.claim(selector),
                    makeDispatcher: { Dispatcher(decode: decode) }
                )
                if let request { mustWake = core.outbox.subscribe(request) }
                return status
            }
        }
        if let status { status.begin(add) } else { _ = add() }
        if mustWake && wakes { binding.wake() }
        return Subscription { [weak self] in self?.unsubscribe(selector, id: id) }
    }

    /// Adds an observer of raw events.
    ///
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    func subscribe(
        rawTopic topic: String,
        onStatus: (@Sendable (SubscriptionStatus) -> Void)?,
        onGap: (@Sendable (GapReason) -> Void)?,
        onEnd: (@Sendable () -> Void)?,
        handler: @escaping @Sendable (RawEvent) -> Void
    ) throws(CommunicationError) -> Subscription {
        guard binding.isObservable(rawTopicFilter: topic) else { throw .invalidTopic(topic) }
        return subscribe(
            .raw(WireName(topic)),
            decode: { message in
                var topic = message.label
                if case .raw(let name, _, _) = message.origin { topic = name }
                return RawEvent(topic: topic, payload: message.payload, isRetained: message.isRetained)
            },
            onStatus: onStatus,
            onGap: onGap,
            onEnd: onEnd,
            handler: handler
        )
    }

    /// Requests a subscription from the broker again, so that the broker delivers its retained messages again. Does
    /// nothing if there is no such subscription, or while the session is not connected: each connection requests it
    /// anyway.
    func requestAgain(_ selector: EventSelector) {
        let mustWake = core.withLock { core in
            guard let request = core.subscriptions.requestAgain(selector) else { return false }
            core.outbox.subscribe(ahead: [request])
            return true
        }
        if mustWake { binding.wake() }
    }

    /// Adds an observer that stays as long as the session, even across stops. Call it before the first start.
    func addPermanent<Event: Sendable>(
        _ selector: EventSelector,
        decode: @escaping Dispatcher<Event>.Decoder,
        handler: @escaping @Sendable (Event) -> Void
    ) {
        core.withLock { core in
            let observer = Dispatcher<Event>.Observer(
                id: core.nextId(),
                handler: handler,
                onGap: nil,
                onEnd: nil,
                isPermanent: true,
                status: nil
            )
            _ = core.subscriptions.add(selector, observer, isConnected: false) { Dispatcher(decode: decode) }
        }
    }

    private func unsubscribe(_ selector: EventSelector, id: UInt64) {
        var mustWake = false
        let removed = core.withLock { core in
            let (removed, isLast) = core.subscriptions.remove(selector, observer: id)
            if isLast, core.state.sends { mustWake = core.outbox.unsubscribe(selector) }
            return removed
        }
        // The observer's references are released here, outside the lock: they may include other subscriptions, which
        // then end.
        withExtendedLifetime(removed) {}
        if mustWake { binding.wake() }
    }

    /// Returns the observers of a selector.
    func dispatcher(for selector: EventSelector) -> (any Dispatching)? {
        core.withLock { $0.subscriptions.dispatcher(for: selector) }
    }

    /// Delivers a message to the observers of a selector.
    ///
    /// - Parameter dropLog: logs a message that is not valid.
    func deliver(_ message: InboundMessage, to selector: EventSelector, _ dropLog: DropLog) {
        guard let dispatcher = dispatcher(for: selector) else { return }
        do throws(PayloadError) {
            try dispatcher.deliver(message)
        } catch {
            dropLog.note(invalid: "an event that is not valid", message.origin.sourceId, message.label, error)
            dispatcher.noteGap(GapReason(error))
        }
    }

    /// Sends a gap to the observers of a dropped message.
    func noteGap(_ origin: InboundMessage.Origin?) {
        let selectors =
            switch origin {
            case .event(let address)?: [EventSelector(address)]
            case .raw(_, let selectors, _)?: selectors
            case nil: [EventSelector]()
            }
        for selector in selectors { dispatcher(for: selector)?.noteGap(.missed) }
    }

    /// Sends a gap to all observers.
    func noteGap() {
        for dispatcher in core.withLock({ $0.subscriptions.dispatchers }) { dispatcher.noteGap(.missed) }
    }

    func answer(_ request: SubscriptionRequest, isGranted: Bool, life: Int) {
        var mustWake = false
        let (observers, initialPeriod, quarantine) = core.withLock { core -> ([StatusObserver], Int?, Quarantine?) in
            guard core.state.life == life, core.state.sends else { return ([], nil, nil) }
            if let unused = core.reserve.answered(request.selector, isGranted: isGranted) {
                mustWake = endReserved(unused, &core)
                return ([], nil, nil)
            }
            if !isGranted { mustWake = endReserved(core.reserve.giveUp(), &core) }
            let answered = core.subscriptions.answer(request, isGranted: isGranted)
            if let next = answered.next {
                core.outbox.subscribe(ahead: [next])
                mustWake = true
            }
            return (answered.observers, answered.isInitial ? core.state.period : nil, core.quarantine)
        }
        if mustWake { binding.wake() }
        quarantine?.session.binding.wake()
        for observer in observers { observer.report(isGranted ? .standing : .refused) }
        // The session is online only when all observers have their status.
        if let initialPeriod { handle(.answered(life: life, period: initialPeriod)) }
    }

    // MARK: - For the binding

    /// The number of the last connection; 0 before the first.
    var statePeriod: Int { core.withLock { $0.state.period } }

    func isCurrent(_ life: Int) -> Bool {
        core.withLock { core in
            guard core.state.life == life else { return false }
            switch core.state.phase {
            case .running, .stopping, .leaving: return true
            case .stopped, .starting, .closed: return false
            }
        }
    }

    func isConnected(_ life: Int) -> Bool {
        core.withLock { $0.state.life == life && $0.state.isConnected }
    }

    func isLeaving(_ life: Int) -> Bool {
        core.withLock { core in
            switch core.state.phase {
            case .running, .stopping: core.state.life != life
            case .stopped, .starting, .leaving, .closed: true
            }
        }
    }

    func hasOperations(_ life: Int) -> Bool {
        core.withLock { $0.state.life == life && $0.state.isConnected && $0.outbox.operations > 0 }
    }

    func nextOperation(_ life: Int) -> SessionOperation? {
        if let agent = configuration.guarded { return nextTrial(life, guarding: agent) }
        return core.withLock { core in
            guard core.state.life == life, core.state.isConnected else { return nil }
            let operation = core.outbox.next()
            guard case .publish(var publication) = operation else { return operation }
            let isTried = core.beginOwnTrial(of: publication)
            publication.isWrittenAlone =
                isTried || publication.isDeferred && core.suspects.isConfirmedAlone(deferred: publication)
            return .publish(publication)
        }
    }
}

extension Session.Core {
    /// Removes and returns the actions that now have room.
    mutating func takeRoom() -> [@Sendable () -> Void] {
        guard !waitingForRoom.isEmpty else { return [] }
        let ready = waitingForRoom.filter { outbox.hasRoom(for: $0.value) }
        for id in ready.keys { waitingForRoom[id] = nil }
        return ready.values.map(\.action)
    }
}

extension Outbox {
    func hasRoom(for request: Session.RoomRequest) -> Bool {
        publications < request.publications && bytes < request.bytes
    }
}
