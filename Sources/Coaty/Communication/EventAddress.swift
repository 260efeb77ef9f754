/// The name that distinguishes events of one pattern from each other.
public enum EventName: Hashable, Sendable {
    /// The core type of the object of an Advertise or Update event.
    case coreType(WireName)
    /// The object type of the object of an Advertise or Update event.
    case objectType(WireName)
    /// The channel, the operation or the IO context of a Channel, Call or Associate event.
    case name(WireName)

    /// The name as text.
    public var text: String {
        switch self {
        case .coreType(let name), .objectType(let name), .name(let name): name.text
        }
    }

    /// Whether it is an object type.
    public var isObjectType: Bool { if case .objectType = self { true } else { false } }
}

/// The source or destination of an event, in Coaty's terms. A binding maps it to an address of its protocol and back.
public struct EventAddress: Sendable {
    /// The pattern.
    public let eventType: CommunicationEventType
    /// The name; nil for patterns that have none.
    public let name: EventName?
    /// The namespace of the sender.
    public let namespace: String
    /// The sender: an agent, or the IO source of an IO value.
    public let sourceId: CoatyUUID
    /// The correlation id of the request that the event makes or answers; nil for one-way events.
    public let correlationId: CoatyUUID?

    /// Creates an address.
    public init(
        _ eventType: CommunicationEventType,
        name: EventName? = nil,
        namespace: String,
        sourceId: CoatyUUID,
        correlationId: CoatyUUID? = nil
    ) {
        self.eventType = eventType
        self.name = name
        self.namespace = namespace
        self.sourceId = sourceId
        self.correlationId = correlationId
    }

    /// Number of bytes that count against the limits of the outbox.
    var size: Int {
        namespace.utf8.count + sourceId.string.utf8.count + (name?.text.utf8.count ?? 0)
            + (correlationId?.string.utf8.count ?? 0)
    }
}

/// The events that a subscription selects.
public enum EventSelector: Hashable, Sendable {
    /// Events of a pattern with a name, from every sender.
    case events(CommunicationEventType, name: EventName?)
    /// Responses to one request.
    case responses(CommunicationEventType, correlationId: CoatyUUID)
    /// Messages outside of Coaty, selected by a filter of the binding.
    case raw(WireName)
    /// Values on the route of an IO source. The binding makes routes.
    case ioRoute(WireName)
    /// All events of some patterns, whatever their names.
    case traffic(Set<CommunicationEventType>)

    /// Creates the selector of the subscription that an event belongs to.
    init(_ address: EventAddress) {
        if address.eventType.isResponse, let correlationId = address.correlationId {
            self = .responses(address.eventType, correlationId: correlationId)
        } else {
            self = .events(address.eventType, name: address.name)
        }
    }
}
