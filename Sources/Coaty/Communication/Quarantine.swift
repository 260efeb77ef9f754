import Synchronization

/// The connection for publications because of which the broker may close the connection, so that the agent's own connection
/// stays (see ``PublicationSuspects``).
///
/// It has the agent's user and rights, but another client id and no last will. The broker confirms each publication before
/// the next one is written. If the broker closes it instead, while the agent's own connection lasts until the next one is
/// accepted here, the publication is proven to be the cause. It ends when it is idle after ``idleTime``.
///
/// Lock order: the agent's session, then this one's.
final class Quarantine: SessionDelegate {
    /// Interval at which it ends if nothing is queued.
    static let idleTime = Duration.seconds(60)
    /// Maximum number of lost connections on which the same publication was being written.
    static let maximumAttempts = 5

    /// The publication that is being tried.
    struct Trial: Sendable {
        var publication: Publication
        /// Whether it was written entirely.
        var isWritten: Bool
        /// The agent's connection when the connection was lost.
        var period: Int?
    }

    let session: Session

    init(of agent: Session, binding: any Binding) {
        let configuration = agent.configuration
        session = Session(
            Session.Configuration(
                identityId: nil,
                namespace: configuration.namespace,
                observesAllNamespaces: false,
                limits: configuration.limits,
                messageCounts: configuration.messageCounts,
                guarded: agent
            ),
            binding: binding,
            log: agent.log
        )
    }

    /// Connects.
    func start() { session.start(self) }

    /// Publishes what is left if there is a connection, and returns when it is closed.
    func close() async { await session.stop(forGood: true, self) }

    /// Queues publications, all or none.
    func publish(_ publications: [Publication]) throws(CommunicationError) {
        let mustWake = try session.core.withLock { core throws(CommunicationError) in
            try core.outbox.publish(publications)
        }
        if mustWake { session.binding.wake() }
    }

    /// Queues publications that were queued for the agent's connection before.
    func adopt(_ publications: [Publication]) {
        session.core.withLock { $0.outbox.adopt(publications) }
        session.binding.wake()
    }

    /// Returns whether publications of a client are queued or not yet confirmed.
    ///
    /// - Parameter client: nil for the agent itself.
    func holds(publicationsOf client: (any PublicationClient)?) -> Bool {
        session.core.withLock { core in
            core.outbox.holds(publicationsOf: client) || core.trial.map { $0.publication.client === client } ?? false
        }
    }

    /// What is queued.
    var queued: QueuedPublications { session.core.withLock { QueuedPublications($0.outbox) } }

    /// Whether nothing is queued or not yet confirmed.
    var isIdle: Bool { session.core.withLock { $0.outbox.isDrained && $0.trial == nil } }

    /// The objects that publications advertise which are queued or not yet confirmed.
    var advertised: Set<CoatyUUID> {
        session.core.withLock { core in
            core.outbox.advertised.union([core.trial?.publication.sharedObjectId].compactMap(\.self))
        }
    }

    /// The objects that queued publications deadvertise, if they can't be published any more.
    var undelivered: [CoatyUUID] { session.core.withLock { $0.state.sends ? [] : $0.outbox.deadvertised } }

    func received(_ message: InboundMessage) {}
    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?) {}
    func mayHaveMissed() {}
    func sessionEnded() {}
}

// MARK: - The agent's session

extension Session {
    /// Publishes publications over the quarantine if they must be.
    ///
    /// - Returns: false if they belong on the agent's connection.
    func quarantine(_ publications: [Publication], _ core: inout Core) throws(CommunicationError) -> Bool {
        guard core.suspects.isActive || core.quarantine != nil else { return false }
        let now = ContinuousClock.now
        core.suspects.forgetExpired(now: now)
        for publication in publications {
            if let error = core.suspects.refusal(of: publication, now: now) { throw error }
        }
        // The order of a client's publications is kept, and that of the publications about an object.
        let follows =
            core.quarantine.map { quarantine in
                publications.contains { publication in
                    if quarantine.holds(publicationsOf: publication.client) { return true }
                    // The queue is searched only for a publication about objects.
                    guard let ids = publication.sharing?.objectIds else { return false }
                    return !quarantine.advertised.isDisjoint(with: ids)
                }
            } ?? false
        guard follows || publications.contains(where: { core.suspects.isSuspect($0, now: now) }),
            let quarantine = openQuarantine(&core)
        else { return false }
        try quarantine.publish(publications)
        return true
    }

    /// Returns the quarantine, which connects if it is new; nil if the system has no descriptors for it.
    private func openQuarantine(_ core: inout Core) -> Quarantine? {
        if let quarantine = core.quarantine { return quarantine }
        guard core.state.isStarted, let binding = try? configuration.makeBinding?(log.logger) else { return nil }
        let quarantine = Quarantine(of: self, binding: binding)
        core.quarantine = quarantine
        scheduleEnd(&core)
        quarantine.start()
        return quarantine
    }

    /// Ends a period: what may be the cause of its end is published over the quarantine.
    ///
    /// - Returns: the number of publications that are suspected.
    func endPeriod(byBroker: Bool, _ core: inout Core) -> Int {
        let now = ContinuousClock.now
        let byBroker = byBroker && core.state.isStarted
        let partly = core.outbox.beingWritten
        let suspected = core.suspects.connectionLost(partly: partly, byBroker: byBroker, now: now)
        guard core.state.isStarted, configuration.guarded == nil, configuration.makeBinding != nil else {
            _ = core.outbox.end()
            return suspected
        }
        var clients: Set<ObjectIdentifier?> = []
        let (former, suspects) = (core.quarantine, core.suspects)
        let extracted = core.outbox.end { publication, isPartly in
            let client = publication.client.map(ObjectIdentifier.init)
            guard
                isPartly && (byBroker || publication.attempts > 0) || clients.contains(client)
                    || suspects.isSuspect(publication, now: now)
                    || former?.holds(publicationsOf: publication.client) ?? false
            else { return false }
            clients.insert(client)
            return true
        }
        if !adopt(extracted, &core) { core.outbox.adopt(extracted, isFirst: true) }
        return suspected
    }

    /// Queues publications for the quarantine.
    ///
    /// - Returns: whether there is one.
    private func adopt(_ publications: [Publication], _ core: inout Core) -> Bool {
        guard !publications.isEmpty else { return true }
        guard let quarantine = openQuarantine(&core) else { return false }
        quarantine.adopt(publications)
        return true
    }

    /// Returns the publications that announce the agent and its objects at the beginning of a period, without those that
    /// are published over the quarantine.
    func joinEvents(_ core: inout Core) -> [Publication] {
        let objects = core.advertised.inOrder
        guard core.suspects.isActive || core.quarantine != nil else {
            return configuration.joinEvents + objects.map { $0.asJoinEvent() }
        }
        let now = ContinuousClock.now
        let (former, queued) = (core.quarantine, core.quarantine?.advertised ?? [])
        var (own, suspects): ([Publication], [Publication]) = ([], [])
        for publication in objects {
            // The queued version is as new.
            if let id = publication.sharedObjectId, queued.contains(id) { continue }
            if core.suspects.isSuspect(publication, now: now)
                || former?.holds(publicationsOf: publication.client) ?? false
            {
                suspects.append(publication)
            } else {
                own.append(publication.asJoinEvent())
            }
        }
        if !adopt(suspects, &core) { own += suspects.map { $0.asJoinEvent() } }
        return configuration.joinEvents + own
    }

    /// Takes the quarantine of a session that ends.
    func takeQuarantine(_ core: inout Core) -> Quarantine? {
        core.undelivered += core.quarantine?.undelivered ?? []
        core.quarantineEnd = nil
        return core.quarantine.take()
    }

    private func scheduleEnd(_ core: inout Core) {
        core.quarantineEnd = Deadline(after: Quarantine.idleTime) { [weak self] in self?.closeIdleQuarantine() }
    }

    private func closeIdleQuarantine() {
        let quarantine = core.withLock { core -> Quarantine? in
            guard let quarantine = core.quarantine else { return nil }
            guard quarantine.isIdle else {
                scheduleEnd(&core)
                return nil
            }
            core.quarantine = nil
            return quarantine
        }
        guard let quarantine else { return }
        Task { await quarantine.close() }
    }

    /// The number of the current connection; nil if there is none.
    fileprivate var connectedPeriod: Int? { core.withLock { $0.state.sends ? $0.state.period : nil } }

    /// Returns whether the quarantine may publish: the agent's own observations receive it, everything that was queued before
    /// is written, and a request's responses are subscribed.
    fileprivate func lets(pass publication: Publication) -> Bool {
        core.withLock { core in
            guard core.state.onlinePeriod != nil else { return false }
            if let oldest = core.outbox.oldestQueued, oldest <= publication.queuedSince ?? .now { return false }
            guard publication.request != nil, let selector = publication.responses else { return true }
            return !core.subscriptions.isAwaited(selector)
        }
    }

    fileprivate func quarantineHasWritten(_ publication: Publication, isWritten: Bool) {
        core.withLock { core in
            guard isWritten else {
                if let id = publication.sharedObjectId { core.advertised.remove(id) }
                return
            }
            core.counts.published += 1
            configuration.messageCounts.countPublished()
            _ = core.advertised.written(publication)
        }
    }

    fileprivate func quarantineHasPassed(_ publication: Publication) {
        core.withLock { $0.suspects.passed(publication) }
    }

    fileprivate func quarantineHasProven(_ publication: Publication) {
        core.withLock { core in
            core.suspects.prove(publication, now: .now)
            core.quarantine?.session.core.withLock { $0.outbox.removeAdvertisements(besides: publication) }
            if let id = publication.sharedObjectId { core.advertised.remove(id) }
        }
        let refused = RefusedPublication(publication)
        log.reportProven(refused, of: publication.client)
        endRequest(of: publication)
        publication.client?.publicationWasRefused(refused)
    }

    fileprivate func quarantineHasLost(_ publication: Publication) {
        log.reportLost(publication)
        endRequest(of: publication)
    }
}

// MARK: - The quarantine's session

extension Session {
    /// Returns the next operation of a quarantine; nil while the next publication must wait.
    func nextTrial(_ life: Int, guarding agent: Session) -> SessionOperation? {
        while true {
            let next = core.withLock { $0.state.isStarted ? $0.outbox.nextPublication : nil }
            if let next, !agent.lets(pass: next) { return nil }
            let (operation, isOther) = core.withLock { core -> (SessionOperation?, Bool) in
                guard core.state.life == life, core.state.isConnected else { return (nil, false) }
                // It may have been withdrawn meanwhile.
                if core.state.isStarted, core.outbox.nextPublication?.queuedSince != next?.queuedSince {
                    return (nil, true)
                }
                let operation = core.outbox.next()
                guard case .publish(var publication) = operation else { return (operation, false) }
                publication.isWrittenAlone = true
                return (.publish(publication), false)
            }
            if !isOther { return operation }
        }
    }

    /// Handles that a quarantine has written a publication, or can't write it.
    func trialsDone(_ count: Int, areWritten: Bool, _ life: Int, guarding agent: Session) {
        for _ in 0..<count {
            let publication = core.withLock { core -> Publication? in
                guard core.state.life == life, let publication = core.outbox.publicationDone() else { return nil }
                if areWritten, core.state.isStarted {
                    core.trial = Quarantine.Trial(publication: publication, isWritten: true)
                }
                return publication
            }
            if let publication { agent.quarantineHasWritten(publication, isWritten: areWritten) }
        }
    }

    /// Handles that the broker has read what a quarantine has written.
    func trialPassed(_ life: Int, guarding agent: Session) {
        let trial = core.withLock { core in core.state.life == life ? core.trial.take() : nil }
        if let trial { agent.quarantineHasPassed(trial.publication) }
    }

    /// Handles that a quarantine has lost its connection.
    func trialInterrupted(byBroker: Bool, guarding agent: Session) {
        let period = byBroker ? agent.connectedPeriod : nil
        let trial = core.withLock { core in
            core.trial?.period = period
            return period == nil ? core.trial.take() : nil
        }
        if let trial { settle(trial, agent) }
    }

    /// Handles that a quarantine has a new connection.
    func trialContinues(guarding agent: Session) {
        guard let trial = core.withLock({ $0.trial.take() }) else { return }
        if trial.period == agent.connectedPeriod {
            agent.quarantineHasProven(trial.publication)
        } else {
            settle(trial, agent)
        }
    }

    /// Publishes again what was lost for an unknown reason, if it is a state or was not written entirely.
    private func settle(_ trial: Quarantine.Trial, _ agent: Session) {
        var publication = trial.publication
        publication.attempts += 1
        guard publication.isState || !trial.isWritten, publication.attempts < Quarantine.maximumAttempts else {
            return agent.quarantineHasLost(publication)
        }
        core.withLock { $0.outbox.adopt([publication], isFirst: true) }
    }
}

extension Sharing {
    /// The objects whose advertisements it changes.
    fileprivate var objectIds: [CoatyUUID] {
        switch self {
        case .advertises(let id, _, _), .replaces(let id): [id]
        case .ends(let ids): ids
        }
    }
}

extension Publication {
    /// The selector of the responses to a request; nil for other publications.
    var responses: EventSelector? {
        guard case .event(let address) = destination, let correlationId = address.correlationId,
            let responseType = address.eventType.responseType
        else { return nil }
        return .responses(responseType, correlationId: correlationId)
    }
}
