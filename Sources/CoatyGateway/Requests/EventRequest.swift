import Coaty

/// A request, of a client's or of others: one of the two-way events.
enum EventRequest: Sendable {
    case discover(DiscoverEvent)
    case query(QueryEvent)
    case update(UpdateEvent)
    case call(CallEvent)

    /// Reads the payload of an event by its name in frames and paths. Nil where there is no such request.
    ///
    /// - Parameters:
    ///   - operation: what is called; other events have none.
    ///   - payload: operators of its filter may be names.
    /// - Throws: ``PayloadError`` with the place in the payload; ``CommunicationError/invalidName(_:)`` where the
    ///   operation can't stand in a topic.
    init?(event name: String, operation: String?, payload: Payload) throws {
        switch name {
        case "discover": self = .discover(try DiscoverEvent(payload: payload))
        case "query": self = .query(try QueryEvent(personal: payload))
        case "update": self = .update(try UpdateEvent(payload: payload))
        case "call": self = .call(try CallEvent(operation: operation ?? "", personal: payload))
        default: return nil
        }
    }

    /// Publishes the request, and hands its responses to the sink.
    ///
    /// - Parameters:
    ///   - count: counts it.
    ///   - onResolve: is told each Resolve event.
    /// - Throws: where it can't be published; then the sink is not told of an end.
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
