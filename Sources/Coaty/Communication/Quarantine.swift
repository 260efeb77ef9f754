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
    /// How long attempts to connect must fail, while the agent is online, before the agent does without a quarantine, and
    /// for how long.
    static let refusedTime = Duration.seconds(30)
    static let pause = Duration.seconds(600)
    /// Maximum time for which a stop waits until everything is published.
    static let finishTime = Duration.seconds(2)

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

    /// Waits until nothing is queued if there is a connection, at most ``finishTime``.
    func finish() async {
        guard session.isSending else { return }
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        let room = session.whenRoom(below: 1, bytes: .max) { continuation.finish() }
        let deadline = Deadline(after: Self.finishTime) { continuation.finish() }
        for await _ in stream {}
        withExtendedLifetime((room, deadline)) {}
    }

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

    /// Gives back everything that is not published, in order.
    ///
    /// - Returns: the publication that is lost; nil if there is none.
    func giveBack(to outbox: inout Outbox) -> Publication? {
        let (publications, lost) = session.core.withLock { core in
            let lost = core.settleTrial()
            return (core.outbox.end { _, _ in true }, lost)
        }
        outbox.adopt(publications)
        return lost
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

    /// The objects that publications deadvertise which can't be published any more.
    var undelivered: [CoatyUUID] {
        session.core.withLock { core in
            guard !core.state.sends else { return [] }
            guard case .ends(let ids)? = core.trial?.publication.sharing else { return core.outbox.deadvertised }
            return ids + core.outbox.deadvertised
        }
    }

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
        guard core.state.isStarted, core.mayOpenQuarantine, let binding = try? configuration.makeBinding?(log.logger)
        else { return nil }
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
        let loss = core.suspects.connectionLost(partly: partly, byBroker: byBroker, now: now)
        guard core.state.isStarted, configuration.makeBinding != nil else {
            core.trial = nil
            _ = core.outbox.end()
            return loss.suspected
        }
        if core.ownTrialIsInterrupted(byBroker: byBroker, suspected: loss.suspected) {
            // Nothing else was unconfirmed. It is queued again if it is not proven to be the cause.
            _ = core.outbox.end { _, isPartly in isPartly }
            return loss.suspected
        }
        var clients: Set<ObjectIdentifier?> = []
        let (former, suspects) = (core.quarantine, core.suspects)
        func isExtracted(_ publication: Publication, isPartly: Bool) -> Bool {
            let client = publication.client.map(ObjectIdentifier.init)
            guard
                isPartly && (byBroker || publication.attempts > 0) || clients.contains(client)
                    || suspects.isSuspect(publication, now: now)
                    || former?.holds(publicationsOf: publication.client) ?? false
            else { return false }
            clients.insert(client)
            return true
        }
        let suspectsRetained = loss.retained.filter { isExtracted($0, isPartly: false) }
        let retained = loss.retained.filter { !clients.contains($0.client.map(ObjectIdentifier.init)) }
        let extracted = suspectsRetained + core.outbox.end(extracting: isExtracted)
        core.outbox.adopt(retained, isFirst: true)
        if !adopt(extracted, &core) { core.outbox.adopt(extracted, isFirst: true) }
        return loss.suspected
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

    /// Handles that an attempt to connect the quarantine has failed.
    func quarantineHasFailed(_ error: ConnectionError) {
        let now = ContinuousClock.now
        let (quarantine, lost) = core.withLock { core -> (Quarantine?, Publication?) in
            guard core.state.onlinePeriod != nil, let quarantine = core.quarantine else {
                core.quarantineFailsSince = nil
                return (nil, nil)
            }
            let since = core.quarantineFailsSince ?? now
            core.quarantineFailsSince = since
            guard now >= since + configuration.quarantineRefusedTime else { return (nil, nil) }
            core.hasNoQuarantineUntil = now + Quarantine.pause
            (core.quarantine, core.quarantineEnd, core.quarantineFailsSince) = (nil, nil, nil)
            return (quarantine, quarantine.giveBack(to: &core.outbox))
        }
        guard let quarantine else { return }
        log.reportNoQuarantine(error)
        if let lost { quarantineHasLost(lost) }
        binding.wake()
        Task { await quarantine.close() }
    }

    /// Whether there is a connection.
    fileprivate var isSending: Bool { core.withLock { $0.state.sends } }

    /// Handles that the quarantine has a new connection.
    ///
    /// - Returns: the number of the agent's connection; nil if there is none.
    func quarantineIsConnected() -> Int? {
        core.withLock { core in
            core.quarantineFailsSince = nil
            return core.state.connectedPeriod
        }
    }

    /// The number of the current connection; nil if there is none.
    var connectedPeriod: Int? { core.withLock { $0.state.connectedPeriod } }

    /// Returns whether the quarantine may publish: the agent's own observations receive it, everything that was queued before
    /// is written, the broker has read what its client has published before, and a request's responses are subscribed.
    func lets(pass publication: Publication) -> Bool {
        core.withLock { core in
            guard core.state.onlinePeriod != nil else { return false }
            if let oldest = core.outbox.oldestQueued, oldest <= publication.queuedSince ?? .now { return false }
            // The broker may read the other connection first.
            guard !core.suspects.hasUnconfirmed(of: publication.client) else { return false }
            guard publication.request != nil, let selector = publication.responses else { return true }
            return !core.subscriptions.isAwaited(selector)
        }
    }

    func quarantineHasWritten(_ publication: Publication, isWritten: Bool) {
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

    func quarantineHasPassed(_ publication: Publication) {
        core.withLock { $0.suspects.passed(publication) }
    }

    func quarantineHasProven(_ publication: Publication) {
        core.withLock { $0.prove(publication) }
        reportProven(publication)
    }

    func reportProven(_ publication: Publication) {
        let refused = RefusedPublication(publication)
        log.reportProven(refused, of: publication.client)
        endRequest(of: publication)
        publication.client?.publicationWasRefused(refused)
    }

    func quarantineHasLost(_ publication: Publication) {
        log.reportLost(publication)
        endRequest(of: publication)
    }
}
