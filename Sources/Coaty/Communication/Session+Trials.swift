/// A publication that is written alone, because the broker may close the connection because of it.
struct Trial: Sendable {
    /// Maximum number of lost connections on which the same publication was being written.
    static let maximumAttempts = 5

    var publication: Publication
    /// Whether it was written entirely.
    var isWritten = false
    /// The agent's connection when the quarantine's was lost.
    var period: Int?

    /// Whether it may be written again when the connection was lost.
    var isRepeatable: Bool { publication.isState || !isWritten }
    /// Whether another lost connection proves it to be the cause: one that can be repeated must be lost twice, because brokers
    /// end, and load balancers move, one connection and not the other.
    var isEvidence: Bool { !isRepeatable || publication.attempts > 0 }
}

extension Session.Core {
    /// Ends a trial that was lost for an unknown reason: queues the publication again if it may be written twice.
    ///
    /// - Returns: the publication if it is lost.
    mutating func settleTrial() -> Publication? {
        guard let ended = trial.take() else { return nil }
        var publication = ended.publication
        // It is advertised again anyway.
        guard !publication.isJoinEvent else { return nil }
        publication.attempts += 1
        guard ended.isRepeatable, publication.attempts < Trial.maximumAttempts else { return publication }
        outbox.adopt([publication], isFirst: true)
        return nil
    }

    /// Gives up a publication that is proven to be the cause of a lost connection.
    mutating func prove(_ publication: Publication) {
        suspects.prove(publication, now: .now)
        outbox.removeAdvertisements(besides: publication)
        quarantine?.session.core.withLock { $0.outbox.removeAdvertisements(besides: publication) }
        if let id = publication.sharedObjectId { advertised.remove(id) }
    }

    // MARK: - Without a quarantine

    /// Whether a quarantine may be opened. If not, suspects are tried on the agent's own connection.
    var mayOpenQuarantine: Bool { hasNoQuarantineUntil.map { $0 <= .now } ?? true }

    /// Begins to try a suspect on the agent's own connection.
    ///
    /// - Returns: false if it is none.
    mutating func beginOwnTrial(of publication: Publication) -> Bool {
        guard suspects.isActive, state.isStarted, !publication.isAnnouncement,
            suspects.isSuspect(publication, now: .now)
        else { return false }
        trial = Trial(publication: publication)
        return true
    }

    /// Ends the trial if the broker has read the publication.
    mutating func passOwnTrial() {
        guard let passed = trial, passed.isWritten, suspects.isConfirmed else { return }
        suspects.passed(passed.publication)
        trial = nil
    }

    /// Handles that the agent has lost its connection.
    ///
    /// - Parameter suspected: number of publications that may be the cause.
    /// - Returns: whether the publication that is tried is the only one.
    mutating func ownTrialIsInterrupted(byBroker: Bool, suspected: Int) -> Bool {
        guard trial != nil, byBroker, suspected == 1, !mayOpenQuarantine else {
            trial = nil
            return false
        }
        return true
    }

    /// Handles that the broker of the agent's last connection does not accept another one.
    ///
    /// - Returns: the publication that was tried if it is lost.
    mutating func formerBrokerRefuses(_ reason: ConnectionError.Reason) -> Publication? {
        guard reason.meansGoneBroker else { return nil }
        suspects.brokerIsGone()
        return settleTrial()
    }

    /// Handles that the agent has a new connection.
    ///
    /// - Returns: the publication that is proven to have ended the last one; nil if there is none.
    mutating func proveOwnTrial() -> Publication? {
        guard let publication = trial.take()?.publication else { return nil }
        prove(publication)
        return publication
    }
}

extension ConnectionError.Reason {
    /// Whether the broker could not be reached, or says that it is not available.
    fileprivate var meansGoneBroker: Bool {
        switch self {
        case .connectionRefused, .timedOut, .hostNotFound, .network, .noAnswer, .brokerUnavailable: true
        default: false
        }
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
            let (publication, room) = core.withLock { core -> (Publication?, [@Sendable () -> Void]) in
                guard core.state.life == life, let publication = core.outbox.publicationDone() else { return (nil, []) }
                if areWritten, core.state.isStarted { core.trial = Trial(publication: publication, isWritten: true) }
                return (publication, core.takeRoom())
            }
            if let publication { agent.quarantineHasWritten(publication, isWritten: areWritten) }
            for action in room { action() }
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
        let lost = core.withLock { core -> Publication? in
            guard let publication = core.trial?.publication else { return nil }
            // One client's publications must not keep those of others waiting.
            core.outbox.moveToEnd(publicationsOf: publication.client)
            core.trial?.period = period
            return period == nil ? core.settleTrial() : nil
        }
        if let lost { agent.quarantineHasLost(lost) }
    }

    /// Handles that a quarantine has a new connection.
    func trialContinues(guarding agent: Session) {
        let period = agent.quarantineIsConnected()
        let (proven, lost) = core.withLock { core -> (Publication?, Publication?) in
            guard let trial = core.trial else { return (nil, nil) }
            guard let known = trial.period, known == period, trial.isEvidence else { return (nil, core.settleTrial()) }
            core.trial = nil
            return (trial.publication, nil)
        }
        if let proven { agent.quarantineHasProven(proven) }
        if let lost { agent.quarantineHasLost(lost) }
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
