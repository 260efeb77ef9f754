import Access
import Coaty

/// A request of a client or of another agent: one of Coaty's two-way events.
enum EventRequest: Sendable {
    case discover(DiscoverEvent)
    case query(QueryEvent)
    case update(UpdateEvent)
    case call(CallEvent)

    var payload: Payload {
        switch self {
        case .discover(let event): event.payload
        case .query(let event): event.payload
        case .update(let event): event.payload
        case .call(let event): event.payload
        }
    }

    /// The number of names that the event is published under.
    var publications: Int {
        switch self {
        case .discover(let event): event.names.count
        case .query(let event): event.names.count
        case .update(let event): event.names.count
        case .call(let event): event.names.count
        }
    }

    /// The pattern in grants.
    var pattern: AccessPattern {
        switch self {
        case .discover: .discover
        case .query: .query
        case .update: .update
        case .call: .call
        }
    }

    /// Parses the payload of an event, given its name in frames and paths. Nil if no request has this name.
    ///
    /// - Parameters:
    ///   - operation: the remote operation of a Call event; nil for other events.
    ///   - payload: the payload. The operators of its filter may be names.
    /// - Throws: ``PayloadError`` with a pointer into the payload; ``CommunicationError/invalidName(_:)`` if the
    ///   operation is not allowed in a topic.
    init?(event name: String, operation: String?, payload: Payload) throws {
        switch name {
        case "discover": self = .discover(try DiscoverEvent(payload: EventMembers.checked(payload, as: .discover)))
        case "query": self = .query(try QueryEvent(personal: EventMembers.checked(payload, as: .query)))
        case "update": self = .update(try UpdateEvent(payload: EventMembers.checked(payload, as: .update)))
        case "call":
            let payload = try EventMembers.checked(payload, as: .call)
            self = .call(try CallEvent(operation: operation ?? "", personal: payload))
        default: return nil
        }
    }
}
