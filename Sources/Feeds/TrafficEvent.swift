import Coaty

/// An event of the network with any sender and content, as the traffic stream delivers it.
struct TrafficEvent: Sendable {
    /// The protocol's name for the event's address; over MQTT, the topic.
    let label: String
    /// The event's address.
    let address: EventAddress
    /// The payload as received.
    let bytes: [UInt8]
    /// The decoded payload: an object that is not checked against the event's pattern. For an IO value, any JSON; nil
    /// if the value is not JSON.
    let payload: Payload?
}

extension TrafficEvent {
    /// Reads a received event.
    ///
    /// - Parameter maximumValues: maximum number of JSON values in the payload.
    /// - Throws: ``PayloadError`` if the payload is not a JSON object, unless it is that of an IO value.
    init(_ address: EventAddress, _ message: InboundMessage, maximumValues: Int) throws(PayloadError) {
        let isIoValue = address.eventType == .ioValue
        var payload: Payload?
        do throws(PayloadError) {
            let text = try Payload(message.payload, maximumValues: maximumValues)
            guard isIoValue || text.json.kind == .object else {
                throw .invalid(pointer: "", reason: "must be an object")
            }
            payload = text
        } catch {
            if error.isTooLarge || !isIoValue { throw error }
        }
        self.init(label: message.label, address: address, bytes: message.payload, payload: payload)
    }

    /// Returns a function that selects events of some types, each once: an event with an object type as name also
    /// arrives with the core type as name.
    static func isObserved(_ eventTypes: Set<CommunicationEventType>) -> @Sendable (EventAddress) -> Bool {
        { eventTypes.contains($0.eventType) && !($0.name?.isObjectType ?? false) }
    }
}

extension CommunicationManager {
    /// Observes all events of some types in the network, including the agent's own. An Advertise or Update event is
    /// delivered once, with the core type as name.
    ///
    /// The events arrive over a separate session: see
    /// `observeSeparately(_:where:ofAllNamespaces:messageCounts:onStatus:onGap:onEnd:handler:)`, which also has the
    /// meaning of the parameters.
    ///
    /// - Throws: errors of the binding's maker.
    func subscribe(
        traffic eventTypes: Set<CommunicationEventType>,
        messageCounts: MessageCounts,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        onGap: @escaping @Sendable (GapReason) -> Void = { _ in },
        onEnd: @escaping @Sendable () -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) throws -> Subscription {
        try observeSeparately(
            [.traffic(eventTypes)],
            where: TrafficEvent.isObserved(eventTypes),
            messageCounts: messageCounts,
            onStatus: onStatus,
            onGap: onGap,
            onEnd: onEnd
        ) { [maximumEventValues] (address, message) throws(PayloadError) in
            handler(try TrafficEvent(address, message, maximumValues: maximumEventValues))
        }
    }

    /// Observes the agents of all namespaces as they join and leave: the Advertise events of identities, and all
    /// Deadvertise events.
    ///
    /// The events arrive over a separate session. For this, a broker that translates dots sends all events of all
    /// namespaces: see ``TopicDialect``.
    ///
    /// - Throws: errors of the binding's maker.
    func subscribeToAgentsOfAllNamespaces(
        messageCounts: MessageCounts,
        onStatus: @escaping @Sendable (SubscriptionStatus) -> Void,
        handler: @escaping @Sendable (TrafficEvent) -> Void
    ) throws -> Subscription {
        let identities = EventName.coreType(WireName(CoreType.Identity.rawValue))
        return try observeSeparately(
            [.events(.advertise, name: identities), .events(.deadvertise, name: nil)],
            where: TrafficEvent.isObserved([.advertise, .deadvertise]),
            ofAllNamespaces: true,
            messageCounts: messageCounts,
            onStatus: onStatus
        ) { [maximumEventValues] (address, message) throws(PayloadError) in
            handler(try TrafficEvent(address, message, maximumValues: maximumEventValues))
        }
    }
}
