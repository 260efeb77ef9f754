/// The events of Coaty.
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

    /// Whether the event is a request or a response, and so has a correlation id.
    public var isTwoWay: Bool {
        switch self {
        case .advertise, .deadvertise, .channel, .associate, .ioValue: false
        default: true
        }
    }

    /// The event that answers this one; nil for events that have no answer.
    public var responseType: CommunicationEventType? {
        switch self {
        case .discover: .resolve
        case .query: .retrieve
        case .update: .complete
        case .call: .return
        default: nil
        }
    }

    /// Whether the event answers a request.
    public var isResponse: Bool {
        switch self {
        case .resolve, .retrieve, .complete, .return: true
        default: false
        }
    }
}
