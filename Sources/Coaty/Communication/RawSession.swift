import Logging
import Synchronization

extension CommunicationManager {
    /// Opens a session that only observes raw events.
    ///
    /// On the agent's session, a flood of raw events would delay Coaty events, and the broker would drop some of them.
    /// The session lasts until it is stopped, or until the communication manager stops.
    ///
    /// - Parameter messageCounts: counts the messages of the session.
    /// - Throws: errors of the binding's maker.
    package func openRawSession(messageCounts: MessageCounts) throws -> RawSession {
        let raw = RawSession(
            agent: session,
            binding: try makeBinding(logger),
            dropLog: observerDropLog,
            messageCounts: messageCounts,
            logger: logger
        )
        // This subscription, which every agent has, ends with the agent's session.
        let ownSession = subscribe(.discover, onEnd: { [weak raw] in raw?.end() }) { _ in }
        raw.open(until: ownSession)
        return raw
    }
}

/// A session that observes raw events and does not publish.
package final class RawSession: SessionDelegate {
    private let agent: Session
    private let session: Session
    private let dropLog: DropLog
    private let ownSession = Mutex<Subscription?>(nil)
    private let isOver = Atomic(false)

    fileprivate init(
        agent: Session,
        binding: any Binding,
        dropLog: DropLog,
        messageCounts: MessageCounts,
        logger: Logger
    ) {
        self.agent = agent
        self.dropLog = dropLog
        session = Session(
            Session.Configuration(
                identityId: nil,
                namespace: agent.configuration.namespace,
                observesAllNamespaces: agent.configuration.observesAllNamespaces,
                limits: OutboxLimits(publications: 0, bytes: 0),
                messageCounts: messageCounts
            ),
            binding: binding,
            log: SessionLog(logger: logger)
        )
    }

    fileprivate func open(until ownSession: Subscription) {
        self.ownSession.withLock { $0 = ownSession }
        session.start(self)
    }

    /// Whether the session was stopped, or the agent has left the network.
    package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

    /// Disconnects in the background. All observations end.
    fileprivate func end() {
        Task { await stop() }
    }

    /// Disconnects, and returns when the session is closed. All observations end.
    package func stop() async {
        isOver.store(true, ordering: .releasing)
        _ = ownSession.withLock { $0.take() }
        await session.stop(forGood: true, self)
    }

    /// Observes raw events.
    ///
    /// - Parameters:
    ///   - topic: a topic filter of the binding. Messages on Coaty's own topics are not delivered.
    ///   - onStatus: called with each change of the subscription's status, in order; must not block. It is not called
    ///     while the session connects for the first time.
    ///   - onGap: called when events may have been missed although the connection is up.
    ///   - onEnd: called when the session ends during the observation.
    ///   - handler: called for each event on the thread of the session's binding; must not block.
    /// - Returns: the observation, which ends when the returned object is released.
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    package func subscribe(
        _ topic: String,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onGap: (@Sendable (GapReason) -> Void)? = nil,
        onEnd: @escaping @Sendable () -> Void,
        handler: @escaping @Sendable (RawEvent) -> Void
    ) throws(CommunicationError) -> Subscription {
        let status = OpeningStatus(onStatus)
        // Read before subscribing: the subscription may be offline at first, while the session connects.
        let isOpening = session.statePeriod == 0
        let subscription = try session.subscribe(
            rawTopic: topic,
            onStatus: { status.take($0, isOpening: isOpening) },
            onGap: onGap,
            onEnd: onEnd,
            handler: handler
        )
        // If the agent is not connected to a broker, the status will not be known soon.
        if !agent.core.withLock({ $0.state.sends }) { status.waitNoLonger() }
        return Subscription {
            status.end()
            subscription.cancel()
        }
    }

    /// Requests an observed topic from the broker again, so that the broker delivers its retained messages again.
    package func requestAgain(_ topic: String) { session.requestAgain(.raw(WireName(topic))) }

    // MARK: - The session

    func received(_ message: InboundMessage) {
        session.configuration.messageCounts.countReceived()
        // A wildcard may also match Coaty events, which the agent's session observes.
        guard case .raw(_, let selectors, _) = message.origin else { return }
        for selector in selectors { session.deliver(message, to: selector, dropLog) }
    }

    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?) {
        session.configuration.messageCounts.countReceived()
        if case .event? = origin { return }
        dropLog.note(reason, label: label)
        session.noteGap(origin)
    }

    func mayHaveMissed() {
        dropLog.noteCongestion()
        session.noteGap()
    }

    func sessionEnded() {}
}
