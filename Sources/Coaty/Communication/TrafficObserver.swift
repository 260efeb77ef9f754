import DequeModule
import Logging
import Synchronization

/// An event as it is on the wire, whoever has sent it, and whatever it holds.
package struct TrafficEvent: Sendable {
    /// The topic.
    package let topic: String
    /// What the topic says.
    package let coatyTopic: CommunicationTopic
    /// The payload as it came.
    package let bytes: [UInt8]
    /// The payload, an object that is not checked against the event's pattern. Of an IO value any JSON; nil where that is none.
    package let payload: Payload?
}

extension CommunicationManager {
    /// Observes all events of some types in the network, the agent's own among them, for whoever wants to see what goes on.
    ///
    /// They come on a link of its own, that is there as long as the observation and has no identity: on the agent's link a
    /// broker would send twice what is observed otherwise, too, and a flood would hold up answers. An Advertise or Update
    /// event comes once, as it is on the topic of the core type.
    ///
    /// - Parameters:
    ///   - eventTypes: the events that are wanted.
    ///   - onStatus: called with each change of the observation's status, in order; must not block.
    ///   - onEnd: called when the communication manager stops while the observation is under way.
    ///   - handler: called for each event, on that link's thread; must not block. It is released when the binding has nothing
    ///     of the link any more, which may be some time after the observation has ended.
    /// - Returns: the observation: it ends when this is released.
    /// - Throws: what the binding's maker throws.
    package func subscribe(
        traffic eventTypes: Set<CommunicationEventType>,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onEnd: @escaping @Sendable () -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) throws -> Subscription {
        let observer = TrafficObserver(
            eventTypes,
            namespace: observedNamespace,
            binding: try makeBinding(logger),
            logger: logger,
            dropLog: trafficDropLog,
            onStatus: onStatus,
            handler: handler
        )
        // What every agent observes goes, and ends, with the agent's own link.
        let ownLink = subscribe(
            .discover,
            onStatus: { [weak observer] status in if status == .offline { observer?.waitNoLonger() } },
            onEnd: onEnd
        ) { _ in }
        observer.start()
        return Subscription {
            ownLink.cancel()
            observer.stop()
        }
    }
}

/// A link that observes events and says nothing.
final class TrafficObserver: LinkDelegate {
    /// How long the link may take to stand until what is observed counts as missed: a broker may let one client in and not
    /// another.
    static let openingTimeout = Duration.seconds(10)

    private struct State {
        /// nil until it is known.
        var status: SubscriptionStatus?
        /// The packet that began the session.
        var ticket: UInt64 = 0
        var isAnswered = false
        /// How many sessions in a row were lost before the broker had answered.
        var lostSessions = 0
        /// Whether the broker has ever granted what is observed: then it does not cut the link upon that.
        var wasGranted = false
        /// The changes of status that are to be told, in order.
        var untold: Deque<SubscriptionStatus> = []
        /// Whether somebody tells them.
        var isTelling = false
    }

    let topicFilters: [String]
    private let eventTypes: Set<CommunicationEventType>
    private let binding: any Binding
    private let logger: Logger
    private let dropLog: DropLog
    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    private let handler: @Sendable (TrafficEvent) -> Void
    private let outbox = Outbox(limits: OutboxLimits(publications: 0, bytes: 0))
    private let state = Mutex(State())
    private let deadline = Mutex<Deadline?>(nil)
    private let hasStopped = Atomic(false)

    /// - Parameter namespace: nil observes all namespaces.
    init(
        _ eventTypes: Set<CommunicationEventType>,
        namespace: String?,
        binding: any Binding,
        logger: Logger,
        dropLog: DropLog,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) {
        topicFilters = Self.topicFilters(of: eventTypes, namespace: namespace)
        self.eventTypes = eventTypes
        self.binding = binding
        self.logger = logger
        self.dropLog = dropLog
        self.onStatus = onStatus
        self.handler = handler
    }

    /// Topic filters that bring all events of some types, and none of them twice. A wildcard can't stand for a part of a level,
    /// so where the topics of one have a filter of its own, all events come that have as many levels.
    private static func topicFilters(of eventTypes: Set<CommunicationEventType>, namespace: String?) -> [String] {
        [false, true].flatMap { isTwoWay in
            let wanted = CommunicationEventType.allCases.filter { $0.isTwoWay == isTwoWay && eventTypes.contains($0) }
            guard wanted.contains(where: \.hasFilter) else {
                return wanted.map { CommunicationTopic.subscription($0, namespace: namespace) }
            }
            return [CommunicationTopic.prefix + (namespace ?? "+") + (isTwoWay ? "/+/+/+" : "/+/+")]
        }
    }

    func start() {
        deadline.withLock { $0 = Deadline(after: Self.openingTimeout) { [weak self] in self?.waitNoLonger() } }
        binding.join(Link(id: CoatyUUID(), will: nil, outbox: outbox, events: self))
    }

    /// Leaves in the background; nothing is told any more.
    func stop() {
        guard !hasStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        deadline.withLock { $0 = nil }
        if outbox.leave(farewell: nil) { binding.wake() }
        Task { [binding] in await binding.leave() }
    }

    /// Where nothing is known of the link by now, it counts as down.
    func waitNoLonger() {
        settle { $0.status == nil ? .offline : nil }
    }

    /// Notes how the link stands, and tells it where that is a change.
    ///
    /// The observer is told under no lock: it may end the observation, or begin another. So that it sees one call at a time and
    /// the changes in their order, who comes while it is told leaves the next one to whoever tells. Those are few: each takes
    /// a session.
    private func settle(_ body: (inout State) -> SubscriptionStatus?) {
        let isToTell = state.withLock { state in
            guard let status = body(&state), state.status != status else { return false }
            state.status = status
            state.untold.append(status)
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard isToTell else { return }
        while let status = nextUntold() { if !isOver { onStatus(status) } }
    }

    private func nextUntold() -> SubscriptionStatus? {
        state.withLock { state in
            state.isTelling = !state.untold.isEmpty
            return state.untold.popFirst()
        }
    }

    private var isOver: Bool { hasStopped.load(ordering: .acquiring) }

    // MARK: - The link

    func linkOpened() {
        let ticket = state.withLock { state in
            state.ticket += 1
            state.isAnswered = false
            return state.ticket
        }
        outbox.open(subscriptions: topicFilters, ticket: ticket, joinEvents: [])
        binding.wake()
    }

    func linkClosed() {
        let unsent = outbox.close().tickets
        guard !isOver else { return }
        settle { state in
            if !state.isAnswered, !state.wasGranted, !unsent.contains(state.ticket) { state.lostSessions += 1 }
            // A broker may cut the link upon what it won't process, each time.
            guard state.lostSessions >= SubscriptionTable.maximumLostSessions else { return .offline }
            if state.status != .refused {
                logger.error(
                    "traffic is not observed: the broker cuts the link upon it",
                    metadata: ["topic filters": "\(topicFilters.joined(separator: " "))"]
                )
            }
            return .refused
        }
    }

    func subscribed(_ ticket: UInt64, refused: [String]) {
        settle { state in
            guard ticket == state.ticket else { return nil }
            state.isAnswered = true
            state.lostSessions = 0
            guard refused.isEmpty else { return .refused }
            state.wasGranted = true
            return .standing
        }
    }

    func received(topic: String, payload bytes: [UInt8]) {
        guard !isOver else { return }
        guard let coatyTopic = CommunicationTopic(topic) else {
            return dropLog.note("a message on a topic of no Coaty event", topic: topic)
        }
        let type = coatyTopic.eventType
        guard eventTypes.contains(type), !coatyTopic.isOfObjectType else { return }
        var payload: Payload?
        do throws(PayloadError) {
            let text = try Payload(bytes)
            guard type == .ioValue || text.json.kind == .object else {
                throw .invalid(pointer: "", reason: "must be an object")
            }
            payload = text
        } catch {
            guard type == .ioValue else {
                return dropLog.note("an event that is not a JSON object", topic: topic, error: error)
            }
        }
        handler(TrafficEvent(topic: topic, coatyTopic: coatyTopic, bytes: bytes, payload: payload))
    }
}

extension CommunicationEventType {
    /// Whether topics of the event have a filter.
    fileprivate var hasFilter: Bool {
        switch self {
        case .advertise, .channel, .associate, .update, .call: true
        case .deadvertise, .ioValue, .discover, .resolve, .query, .retrieve, .complete, .return: false
        }
    }
}

extension CommunicationTopic {
    /// Whether it is the topic of an object type, which an event goes out on besides that of the core type.
    fileprivate var isOfObjectType: Bool {
        switch eventType {
        case .advertise, .update: eventTypeFilter?.utf8.first == UInt8(ascii: ":")
        default: false
        }
    }
}
