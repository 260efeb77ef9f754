import Logging
import Synchronization

extension CommunicationManager {
    /// Observes events of the network over a separate session without an identity, which lasts as long as the
    /// observation.
    ///
    /// On the agent's session, a broker would send events twice that are also observed otherwise, and a flood would
    /// delay answers.
    ///
    /// - Parameters:
    ///   - selectors: the events that the broker delivers.
    ///   - isObserved: returns whether an event is observed: the selectors may match others too.
    ///   - ofAllNamespaces: whether events of all namespaces are observed, even if the agent observes only its own.
    ///   - messageCounts: counts the messages of the session.
    ///   - onStatus: called with each change of the observation's status, in order; must not block.
    ///   - onGap: called when events may have been missed although the connection is up.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - handler: called for each event, on the thread of that session's binding; must not block. If it throws, the
    ///     event is logged as not valid, and `onGap` is called. The handler is released when
    ///     the binding holds no more references to the session, which may be some time after the observation has ended.
    /// - Returns: the observation, which ends when the returned object is released.
    /// - Throws: errors of the binding's maker.
    package func observeSeparately(
        _ selectors: [EventSelector],
        where isObserved: @escaping @Sendable (EventAddress) -> Bool,
        ofAllNamespaces: Bool = false,
        messageCounts: MessageCounts,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onGap: @escaping @Sendable (GapReason) -> Void = { _ in },
        onEnd: @escaping @Sendable () -> Void = {},
        handler: @escaping @Sendable (EventAddress, InboundMessage) throws(PayloadError) -> Void
    ) throws -> Subscription {
        let observing = ObservingSession(
            selectors,
            where: isObserved,
            namespace: namespace,
            observesAllNamespaces: observesAllNamespaces || ofAllNamespaces,
            binding: try makeBinding(logger),
            dropLog: observerDropLog,
            messageCounts: messageCounts,
            logger: logger,
            onStatus: onStatus,
            onGap: onGap,
            handler: handler
        )
        // This subscription, which every agent has, ends with the agent's session.
        let ownSession = subscribe(
            .discover,
            onStatus: { [weak observing] status in if status == .offline { observing?.waitNoLonger() } },
            onEnd: onEnd
        ) { _ in }
        observing.start()
        return Subscription {
            ownSession.cancel()
            observing.stop()
        }
    }
}

/// A session that observes events and does not publish.
final class ObservingSession: SessionDelegate {
    /// Handles an event.
    ///
    /// - Throws: ``PayloadError`` if the payload is not valid.
    typealias Handler = @Sendable (EventAddress, InboundMessage) throws(PayloadError) -> Void

    private let isObserved: @Sendable (EventAddress) -> Bool
    private let selectors: [EventSelector]
    private let session: Session
    private let dropLog: DropLog
    private let status: OpeningStatus
    private let onGap: @Sendable (GapReason) -> Void
    private let handler: Handler
    private let subscriptions = Mutex<[Subscription]>([])
    private let hasStopped = Atomic(false)

    init(
        _ selectors: [EventSelector],
        where isObserved: @escaping @Sendable (EventAddress) -> Bool,
        namespace: String,
        observesAllNamespaces: Bool,
        binding: any Binding,
        dropLog: DropLog,
        messageCounts: MessageCounts,
        logger: Logger,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onGap: @escaping @Sendable (GapReason) -> Void,
        handler: @escaping Handler
    ) {
        self.selectors = selectors
        self.isObserved = isObserved
        self.dropLog = dropLog
        status = OpeningStatus(onStatus)
        self.onGap = onGap
        self.handler = handler
        session = Session(
            Session.Configuration(
                identityId: nil,
                namespace: namespace,
                observesAllNamespaces: observesAllNamespaces,
                limits: OutboxLimits(publications: 0, bytes: 0),
                messageCounts: messageCounts
            ),
            binding: binding,
            log: SessionLog(logger: logger)
        )
    }

    func start() {
        // Events are delivered by `received(_:)`, which needs no dispatcher.
        let subscriptions = selectors.map { selector in
            session.subscribe(
                selector,
                decode: { _ in },
                onStatus: { [weak self] status in self?.take(status) },
                handler: { _ in }
            )
        }
        self.subscriptions.withLock { $0 = subscriptions }
        session.start(self)
    }

    /// Disconnects in the background. No status and no event is reported after this call.
    func stop() {
        guard !hasStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        status.end()
        Task { await session.stop(forGood: true, self) }
    }

    /// Reports the session as offline if its status is not known by now.
    func waitNoLonger() { status.waitNoLonger() }

    private func take(_ status: SubscriptionStatus) {
        self.status.take(status, isOpening: session.statePeriod == 0)
    }

    private var isOver: Bool { hasStopped.load(ordering: .acquiring) }

    // MARK: - The session

    func received(_ message: InboundMessage) {
        session.configuration.messageCounts.countReceived()
        guard !isOver, case .event(let address) = message.origin, isObserved(address) else { return }
        do throws(PayloadError) {
            try handler(address, message)
        } catch {
            dropLog.note(invalid: "an event that is not valid", address.sourceId, message.label, error)
            onGap(GapReason(error))
        }
    }

    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?) {
        session.configuration.messageCounts.countReceived()
        dropLog.note(reason, label: label)
        if !isOver, case .event(let address)? = origin, isObserved(address) { onGap(.missed) }
    }

    func mayHaveMissed() {
        dropLog.noteCongestion()
        if !isOver { onGap(.missed) }
    }

    func sessionEnded() {}
}
