import Logging
import Synchronization

/// An unchecked event from the network, with any sender and content.
package struct TrafficEvent: Sendable {
    /// The protocol's name for the event's address; over MQTT, the topic.
    package let label: String
    /// The event's address.
    package let address: EventAddress
    /// The payload as received.
    package let bytes: [UInt8]
    /// The decoded payload: an object that is not checked against the event's pattern. For an IO value, any JSON; nil
    /// if the value is not JSON.
    package let payload: Payload?
}

extension CommunicationManager {
    /// Observes all events of some types in the network, including the agent's own.
    ///
    /// The events arrive over a separate session without an identity, which lasts as long as the observation. On the
    /// agent's session, a broker would send events twice that are also observed otherwise, and a flood would delay
    /// answers. An Advertise or Update event is delivered once, with the core type as name.
    ///
    /// - Parameters:
    ///   - eventTypes: the events to observe.
    ///   - onStatus: called with each change of the observation's status, in order; must not block.
    ///   - onGap: called when events may have been missed although the connection is up.
    ///   - onEnd: called when the communication manager stops during the observation.
    ///   - handler: called for each event, on the thread of that session's binding; must not block. It is released when
    ///     the binding holds no more references to the session, which may be some time after the observation has ended.
    /// - Returns: the observation, which ends when the returned object is released.
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

    /// Observes the agents of all namespaces as they join and leave: the Advertise events of identities, and all
    /// Deadvertise events.
    ///
    /// The events arrive over a separate session, as in ``subscribe(traffic:onStatus:onGap:onEnd:handler:)``. For this,
    /// a broker that translates dots sends all events of all namespaces: see `TopicDialect`.
    ///
    /// - Parameters:
    ///   - onStatus: called with each change of the status of a subscription; must not block.
    ///   - handler: called for each event, on the thread of that session's binding; must not block.
    /// - Returns: the observation, which ends when the returned object is released.
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
        // This subscription, which every agent has, ends with the agent's session.
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

/// A session that observes events and does not publish.
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
        guard !isOver, case .event(let address) = message.origin, eventTypes.contains(address.eventType) else { return }
        // Such an event also arrives with the core type as name.
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
