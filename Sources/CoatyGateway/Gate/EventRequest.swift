import Coaty

/// A request of a client or of another agent: one of Coaty's two-way events.
enum EventRequest: Sendable {
    case discover(DiscoverEvent)
    case query(QueryEvent)
    case update(UpdateEvent)
    case call(CallEvent)

    /// Parses the payload of an event, given its name in frames and paths. Nil if no request has this name.
    ///
    /// - Parameters:
    ///   - operation: the remote operation of a Call event; nil for other events.
    ///   - payload: the payload. The operators of its filter may be names.
    /// - Throws: ``PayloadError`` with a pointer into the payload; ``CommunicationError/invalidName(_:)`` if the operation is
    ///   not allowed in a topic.
    init?(event name: String, operation: String?, payload: Payload) throws {
        switch name {
        case "discover": self = .discover(try DiscoverEvent(payload: payload))
        case "query": self = .query(try QueryEvent(personal: payload))
        case "update": self = .update(try UpdateEvent(payload: payload))
        case "call": self = .call(try CallEvent(operation: operation ?? "", personal: payload))
        default: return nil
        }
    }

    /// Publishes the request and passes its responses to the sink.
    ///
    /// - Parameters:
    ///   - count: counts the request.
    ///   - onResolve: called with each Resolve event.
    /// - Throws: if the request can't be published. The sink's `end` is then not called.
    func run(
        _ options: RequestOptions,
        on manager: CommunicationManager,
        into sink: any ResponseSink,
        count: RequestCount,
        onResolve: (@Sendable (ResolveEvent) -> Void)? = nil
    ) throws(CommunicationError) -> RequestRun {
        switch self {
        case .discover(let event): try .start(event, options, on: manager, into: sink, count: count, observe: onResolve)
        case .query(let event): try .start(event, options, on: manager, into: sink, count: count)
        case .update(let event): try .start(event, options, on: manager, into: sink, count: count)
        case .call(let event): try .start(event, options, on: manager, into: sink, count: count)
        }
    }
}
