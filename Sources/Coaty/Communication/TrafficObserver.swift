import Logging
import Synchronization

/// An event as it is on the wire, from any sender and with any content.
package struct TrafficEvent: Sendable {
    /// What the binding's protocol calls the event's address; over MQTT the topic.
    package let label: String
    /// The event's address.
    package let address: EventAddress
    /// The payload as it came.
    package let bytes: [UInt8]
    /// The payload, an object that is not checked against the event's pattern. Of an IO value any JSON; nil if that is none.
    package let payload: Payload?
}

extension CommunicationManager {
    /// Observes all events of some types in the network, the agent's own included.
    ///
    /// They come over a session of their own, which lasts as long as the observation and has no identity: on the agent's session
    /// a broker would send what is observed otherwise twice, and a flood would delay answers. An Advertise or Update
    /// event is delivered once, with the core type as name.
    ///
    /// - Parameters:
    ///   - eventTypes: the events to observe.
    ///   - onStatus: called with each change of the observation's status, in order; must not block.
    ///   - onGap: called when events may have been missed although the connection stands.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - handler: called for each event, on the thread of that session's binding; must not block. It is released when the
    ///     binding has nothing of the session any more, which may be some time after the observation has ended.
    /// - Returns: the observation: it ends when this is released.
    /// - Throws: errors of the binding's maker.
    package func subscribe(
        traffic eventTypes: Set<CommunicationEventType>,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onGap: @escaping @Sendable () -> Void = {},
        onEnd: @escaping @Sendable () -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) throws -> Subscription {
        let observer = TrafficObserver(
            eventTypes,
            namespace: namespace,
            observesAllNamespaces: observesAllNamespaces,
            maximumEventValues: maximumEventValues,
            binding: try makeBinding(logger),
            dropLog: observerDropLog,
            messageCounts: trafficCounts,
            logger: logger,
            onStatus: onStatus,
            onGap: onGap,
            handler: handler
        )
        return observe(observer, onEnd: onEnd)
    }

    /// Observes the agents of all namespaces as they join and leave: the Advertise events of identities, and all Deadvertise events.
    ///
    /// They come over a session of their own, as those of ``subscribe(traffic:onStatus:onGap:onEnd:handler:)``. A broker that
    /// translates dots sends all events of all namespaces for this: see `TopicDialect`.
    ///
    /// - Parameters:
    ///   - onStatus: called with each change of the status of a subscription; must not block.
    ///   - handler: called for each event, on the thread of that session's binding; must not block.
    /// - Returns: the observation: it ends when this is released.
    /// - Throws: errors of the binding's maker.
    package func subscribeToAgentsOfAllNamespaces(
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) throws -> Subscription {
        let identities = EventName.coreType(WireName(CoreType.Identity.rawValue))
        let observer = TrafficObserver(
            [.advertise, .deadvertise],
            selectors: [.events(.advertise, name: identities), .events(.deadvertise, name: nil)],
            namespace: namespace,
            observesAllNamespaces: true,
            maximumEventValues: maximumEventValues,
            binding: try makeBinding(logger),
            dropLog: observerDropLog,
            messageCounts: trafficCounts,
            logger: logger,
            onStatus: onStatus,
            onGap: {},
            handler: handler
        )
        return observe(observer, onEnd: {})
    }

    private func observe(_ observer: TrafficObserver, onEnd: @escaping @Sendable () -> Void) -> Subscription {
        // The subscription that every agent has goes, and ends, with the agent's session.
        let ownSession = subscribe(
            .discover,
            onStatus: { [weak observer] status in if status == .offline { observer?.waitNoLonger() } },
            onEnd: onEnd
        ) { _ in }
        observer.start()
        return Subscription {
            ownSession.cancel()
            observer.stop()
        }
    }
}

/// A session that observes events and publishes nothing.
final class TrafficObserver: SessionDelegate {
    private let eventTypes: Set<CommunicationEventType>
    private let selectors: [EventSelector]
    private let maximumEventValues: Int
    private let session: Session
    private let dropLog: DropLog
    private let status: OpeningStatus
    private let onGap: @Sendable () -> Void
    private let handler: @Sendable (TrafficEvent) -> Void
    private let subscriptions = Mutex<[Subscription]>([])
    private let hasStopped = Atomic(false)

    init(
        _ eventTypes: Set<CommunicationEventType>,
        selectors: [EventSelector]? = nil,
        namespace: String,
        observesAllNamespaces: Bool,
        maximumEventValues: Int = .max,
        binding: any Binding,
        dropLog: DropLog,
        messageCounts: MessageCounts,
        logger: Logger,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onGap: @escaping @Sendable () -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) {
        self.eventTypes = eventTypes
        self.selectors = selectors ?? [.traffic(eventTypes)]
        self.maximumEventValues = maximumEventValues
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

    /// Leaves in the background; no status and no event is reported any more.
    func stop() {
        guard !hasStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        status.end()
        Task { await session.stop(forGood: true, self) }
    }

    /// If nothing is known of the session by now, it counts as down.
    func waitNoLonger() { status.waitNoLonger() }

    private func take(_ status: SubscriptionStatus) {
        self.status.take(status, isOpening: session.statePeriod == 0)
    }

    private var isOver: Bool { hasStopped.load(ordering: .acquiring) }

    // MARK: - The session

    func received(_ message: InboundMessage) {
        session.configuration.messageCounts.countReceived()
        guard !isOver, case .event(let address) = message.origin, eventTypes.contains(address.eventType) else { return }
        // Such an event also comes with the core type as name.
        if address.name?.isObjectType ?? false { return }
        let isIoValue = address.eventType == .ioValue
        var payload: Payload?
        do throws(PayloadError) {
            let text = try Payload(message.payload, maximumValues: maximumEventValues)
            guard isIoValue || text.json.kind == .object else {
                throw .invalid(pointer: "", reason: "must be an object")
            }
            payload = text
        } catch {
            if error.isTooLarge || !isIoValue {
                dropLog.note("an event that is not a JSON object", label: message.label, error: error)
                if error.isTooLarge { onGap() }
                return
            }
        }
        handler(TrafficEvent(label: message.label, address: address, bytes: message.payload, payload: payload))
    }

    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?) {
        session.configuration.messageCounts.countReceived()
        dropLog.note(reason, label: label)
        if !isOver, case .event(let address)? = origin, eventTypes.contains(address.eventType) { onGap() }
    }

    func mayHaveMissed() {
        dropLog.noteCongestion()
        if !isOver { onGap() }
    }

    func sessionEnded() {}
}
