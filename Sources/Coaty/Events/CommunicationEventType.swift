/// The event types of Coaty.
public enum CommunicationEventType: Sendable, CaseIterable, Hashable {
    case advertise
    case deadvertise
    case channel
    case associate
    case ioValue
    case discover
    case resolve
    case query
    case retrieve
    case update
    case complete
    case call
    case `return`

    /// Whether the event is a request or a response, which have a correlation id.
    public var isTwoWay: Bool { responseType != nil || isResponse }

    /// The event that answers this one; nil for events without an answer.
    public var responseType: CommunicationEventType? {
        switch self {
        case .discover: .resolve
        case .query: .retrieve
        case .update: .complete
        case .call: .return
        // Without a default, so that the compiler requires a decision for each new event.
        case .advertise, .deadvertise, .channel, .associate, .ioValue, .resolve, .retrieve, .complete, .return: nil
        }
    }

    /// Whether the event answers a request.
    public var isResponse: Bool {
        switch self {
        case .resolve, .retrieve, .complete, .return: true
        case .advertise, .deadvertise, .channel, .associate, .ioValue, .discover, .query, .update, .call: false
        }
    }
}
