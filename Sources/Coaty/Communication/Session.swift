import Logging
import Synchronization

/// A session with a broker: the connection's state, the outbox and the subscriptions, under one lock.
///
/// Lock order: the beginning of a ``StatusObserver``, then a session, then dispatchers and observable states. Callers
/// may hold their own locks (IO associations, registries) when they publish, subscribe, cancel, start or stop: no
/// observer is called on their thread except for the first status of a new subscription. Observers are called under no
/// lock, on the binding's thread or by the task that stops. Under the lock, no object of a client is released and
/// nothing is logged.
final class Session: Sendable {
    /// The constants of a session.
    struct Configuration: Sendable {
        /// nil for a session that only observes.
        let identityId: CoatyUUID?
        let namespace: String
        let observesAllNamespaces: Bool
        let limits: OutboxLimits
        /// The publications that announce the agent in each period.
        var joinEvents: [Publication] = []
        /// The agent's last publication; the broker publishes it if the agent's connection is lost.
        var farewell: Publication?
        /// Maximum time for the broker to answer the subscriptions that exist when a connection comes up.
        var answerTime = Duration.seconds(60)
        /// Counts the messages of this session, and possibly those of other sessions.
        var messageCounts = MessageCounts()
        /// Creates the binding of the ``Quarantine``; nil for a session that does not publish.
        var makeBinding: (@Sendable (Logger) throws -> any Binding)?
        /// How long attempts to connect the quarantine must fail before the agent does without one.
        var quarantineRefusedTime = Quarantine.refusedTime
        /// The agent's session, if this is the session of its quarantine.
        var guarded: Session?
    }

    /// The counters that persist from period to period.
    struct Counts: Sendable {
        var published = 0
        var deferred = 0
        /// When the last period began or ended; initially, when the session was created.
        var since = CoatyTimestamp.nowMillis()
    }

    struct Core: ~Copyable {
        var state = SessionState()
        var outbox: Outbox
        var subscriptions = SubscriptionTable()
        var reserve = ResponseReserve()
        var reserveDeadline: Deadline?
        var advertised = AdvertisedObjects()
        var suspects = PublicationSuspects()
        var quarantine: Quarantine?
        /// Ends the quarantine.
        var quarantineEnd: Deadline?
        /// The publication that a quarantine tries, or an agent that does without one.
        var trial: Trial?
        /// Since when attempts to connect the quarantine have failed; nil if the last one has not.
        var quarantineFailsSince: ContinuousClock.Instant?
        /// Until when the agent does without a quarantine, because the broker has refused the connection.
        var hasNoQuarantineUntil: ContinuousClock.Instant?
        /// Whether the broker has closed the last connection, possibly because of a publication.
        var isClosedByBroker = false
        var counts = Counts()
        /// The properties of the last connection; they are assumed for the next one, too.
        var properties = ConnectionProperties()
        var lastId: UInt64 = 0
        var answerDeadline: Deadline?
        /// Whether the agent was announced in this life and its farewell was not yet queued.
        var owesFarewell = false
        /// The objects that a stop should have deadvertised, but the session was not connected.
        var undelivered: [CoatyUUID] = []
        var waitingForStop: [CheckedContinuation<Void, Never>] = []
        var waitingForRoom: [UInt64: RoomRequest] = [:]

        mutating func nextId() -> UInt64 {
            lastId += 1
            return lastId
        }
    }

    /// An action that is called when fewer publications are queued.
    struct RoomRequest {
        let publications: Int
        let bytes: Int
        let action: @Sendable () -> Void
    }

    let configuration: Configuration
    let binding: any Binding
    let operatingState = ObservableState(OperatingState.stopped)
    let communicationState = ObservableState(CommunicationState.offline)
    /// The number of the last online period; 0 before the first.
    let lastOnlinePeriod = ObservableState(0)
    private let lifecycle = Mutex<(any LifecycleDelegate)?>(nil)
    let log: SessionLog
    /// Whether the agent has ever shared an object. Until then, publishing an object that is not shared has no extra
    /// cost.
    let sharesObjects = Atomic(false)
    /// ``ConnectionProperties/maximumPacketSize``; Int.max if there is none.
    let maximumPacketSize = Atomic(Int.max)
    let core: Mutex<Core>

    init(_ configuration: Configuration, binding: any Binding, log: SessionLog) {
        self.configuration = configuration
        self.binding = binding
        self.log = log
        let outbox = Outbox(limits: configuration.limits, countsClients: configuration.guarded != nil)
        core = Mutex(Core(outbox: outbox))
    }

    /// Sets the delegate that acts before the session joins and before it leaves.
    func setLifecycleDelegate(_ delegate: (any LifecycleDelegate)?) {
        lifecycle.withLock { $0 = delegate }
    }

    // MARK: - Events

    /// An event of a quarantine.
    private enum TrialEvent {
        case interrupted(byBroker: Bool)
        case continues
    }

    /// The actions to perform outside the lock after an event was handled.
    private struct Effects {
        var preparing: Int?
        var draining: Int?
        var leaving: Int?
        var mustWake = false
        var offline: [StatusObserver] = []
        /// Number of publications that may be the cause of a lost connection.
        var suspected = 0
        /// Woken, because it may publish now.
        var quarantine: Quarantine?
        var closing: Quarantine?
        var trial: TrialEvent?
        /// Proven to be the cause of a lost connection.
        var proven: Publication?
        var ended: [@Sendable () -> Void] = []
        var isOver = false
        var stopped: [CheckedContinuation<Void, Never>] = []
        var room: [@Sendable () -> Void] = []
        /// Released outside the lock.
        var forgotten: [UInt64: RoomRequest] = [:]
        var cameOnline = false
        var unanswered = 0
    }

    /// Handles an event of the binding or of a deadline.
    func handle(_ event: SessionState.Event) { handle(event, delegate: nil) }

    /// Starts to connect; does nothing if the session is started. During a stop, the session starts again after it.
    func start(_ delegate: any SessionDelegate) { handle(.start, delegate: delegate) }

    /// Stops, and returns when the stop has finished.
    func stop(forGood: Bool, _ delegate: any SessionDelegate) async {
        handle(forGood ? .close : .stop, delegate: delegate)
        await withCheckedContinuation { continuation in
            let isOver = core.withLock { core in
                switch core.state.phase {
                case .stopped, .closed: return true
                // The session was started again meanwhile.
                case .starting, .running: return true
                case .stopping, .leaving:
                    core.waitingForStop.append(continuation)
                    return false
                }
            }
            if isOver { continuation.resume() }
        }
    }

    /// Handles that the connection is lost.
    ///
    /// - Parameter byPublication: whether the broker may have closed it because of a publication.
    func handleLoss(_ error: ConnectionError?, byPublication: Bool, life: Int) {
        core.withLock { $0.isClosedByBroker = byPublication }
        handle(.lost(life: life, error))
    }

    /// Handles that an attempt to connect has failed.
    func handleFailure(_ error: ConnectionError, isFormerBroker: Bool, life: Int) {
        if let agent = configuration.guarded {
            agent.quarantineHasFailed(error)
        } else if isFormerBroker {
            if let lost = core.withLock({ $0.formerBrokerRefuses(error.reason) }) { quarantineHasLost(lost) }
        }
        handle(.failed(life: life, error))
    }

    private func handle(_ event: SessionState.Event, delegate: (any SessionDelegate)?) {
        let effects = core.withLock { core in
            var effects = Effects()
            if case .answersOverdue = event { effects.unanswered = core.subscriptions.unansweredCount }
            for action in core.state.handle(event, subscriptions: core.subscriptions.count) {
                apply(action, &core, &effects, delegate)
            }
            operatingState.set(core.state.isStarted ? .started : .stopped)
            return effects
        }
        if effects.cameOnline, configuration.guarded == nil { log.reportOnline(unanswered: effects.unanswered) }
        perform(effects, delegate)
    }

    private func apply(
        _ action: SessionState.Action,
        _ core: inout Core,
        _ effects: inout Effects,
        _ delegate: (any SessionDelegate)?
    ) {
        switch action {
        case .prepare(let life):
            core.undelivered = []
            effects.preparing = life
        case .join(let life):
            // Under the lock, so that the binding gets joins and leaves in order. A binding calls back on its own
            // thread.
            if let delegate { binding.join(BindingSession(session: self, life: life, delegate: delegate)) }
        case .beginPeriod:
            core.owesFarewell = configuration.farewell != nil
            core.counts.since = .nowMillis()
            if configuration.guarded == nil { effects.proven = core.proveOwnTrial() }
            core.outbox.begin(
                subscriptions: core.subscriptions.begin(),
                joinEvents: joinEvents(&core)
            )
            effects.mustWake = true
            effects.trial = .continues
        case .awaitAnswers(let period):
            core.answerDeadline = Deadline(after: configuration.answerTime) { [weak self] in
                self?.handle(.answersOverdue(period: period))
            }
        case .announceOnline(let period):
            core.answerDeadline = nil
            communicationState.set(.online)
            lastOnlinePeriod.set(period)
            effects.cameOnline = true
            effects.quarantine = core.quarantine
            effects.mustWake = core.quarantine != nil || effects.mustWake
        case .announceOffline: communicationState.set(.offline)
        case .endPeriod:
            core.answerDeadline = nil
            core.counts.since = .nowMillis()
            if configuration.guarded != nil, core.state.isStarted {
                let interrupted = core.outbox.end { _, isPartly in isPartly }
                if let publication = interrupted.first { core.trial = Trial(publication: publication) }
                effects.trial = .interrupted(byBroker: core.isClosedByBroker)
            } else {
                effects.suspected = endPeriod(byBroker: core.isClosedByBroker, &core)
            }
            effects.room = core.takeRoom()
            effects.offline = core.subscriptions.end()
            (core.reserve, core.reserveDeadline) = (ResponseReserve(), nil)
        case .drain(let life): effects.draining = life
        case .queueLast(let withFarewell):
            if withFarewell {
                core.owesFarewell = false
                core.outbox.queueLast(farewell: configuration.farewell)
            } else {
                core.undelivered += core.outbox.deadvertised
                core.outbox.replaceByDisconnect()
            }
            effects.mustWake = true
        case .leave(let life):
            effects.leaving = life
            effects.closing = takeQuarantine(&core)
        case .discard:
            core.undelivered += core.outbox.deadvertised
            if core.owesFarewell, case .ends(let ids) = configuration.farewell?.sharing { core.undelivered += ids }
            core.owesFarewell = false
            effects.closing = takeQuarantine(&core)
            core.trial = nil
            core.outbox = Outbox(limits: configuration.limits, countsClients: configuration.guarded != nil)
            core.advertised = AdvertisedObjects()
            effects.ended = core.subscriptions.removeAll()
            effects.forgotten = core.waitingForRoom
            core.waitingForRoom = [:]
            effects.isOver = true
        case .resumeStopped:
            effects.stopped = core.waitingForStop
            core.waitingForStop = []
        }
    }

    private func perform(_ effects: Effects, _ delegate: (any SessionDelegate)?) {
        if effects.mustWake {
            binding.wake()
            effects.quarantine?.session.binding.wake()
        }
        for observer in effects.offline { observer.report(.offline) }
        if let proven = effects.proven { reportProven(proven) }
        if effects.suspected > 0 { log.reportSuspects(count: effects.suspected) }
        if let agent = configuration.guarded {
            switch effects.trial {
            case .interrupted(let byBroker): trialInterrupted(byBroker: byBroker, guarding: agent)
            case .continues: trialContinues(guarding: agent)
            case nil: break
            }
        }
        for action in effects.room { action() }
        for end in effects.ended { end() }
        if effects.isOver { delegate?.sessionEnded() }
        for continuation in effects.stopped { continuation.resume() }
        if effects.leaving == nil, let quarantine = effects.closing { Task { await quarantine.close() } }
        guard let delegate else { return }
        if let life = effects.preparing {
            if let lifecycle = lifecycle.withLock(\.self) {
                lifecycle.communicationManagerIsStarting { [self] in handle(.prepared(life: life), delegate: delegate) }
            } else {
                handle(.prepared(life: life), delegate: delegate)
            }
        }
        if let life = effects.draining {
            Task {
                await core.withLock { $0.quarantine }?.finish()
                await lifecycle.withLock(\.self)?.communicationManagerIsStopping()
                handle(.drained(life: life), delegate: delegate)
            }
        }
        if let life = effects.leaving {
            Task {
                async let closed: Void? = effects.closing?.close()
                await binding.leave()
                await closed
                handle(.left(life: life), delegate: delegate)
            }
        }
    }

    /// Ends the request of a publication that is given up: no agent will answer it.
    func endRequest(of publication: Publication) {
        guard let selector = publication.responses else { return }
        core.withLock { $0.subscriptions.dispatcher(for: selector) }?.end()
    }
}

/// Acts on the start and stop of a session.
protocol LifecycleDelegate: AnyObject, Sendable {
    /// Called when the communication manager starts.
    ///
    /// - Parameter join: joins the network; must be called once.
    func communicationManagerIsStarting(then join: @escaping @Sendable () -> Void)

    /// Called before the communication manager leaves the network; it waits until this returns.
    func communicationManagerIsStopping() async
}
