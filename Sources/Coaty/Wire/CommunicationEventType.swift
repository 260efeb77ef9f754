/// The events of Coaty and their codes in topics (Coaty MQTT communication protocol, version 3).
public enum CommunicationEventType: String, Sendable, CaseIterable, Hashable {
    case advertise = "ADV"
    case deadvertise = "DAD"
    case channel = "CHN"
    case associate = "ASC"
    case ioValue = "IOV"
    case discover = "DSC"
    case resolve = "RSV"
    case query = "QRY"
    case retrieve = "RTV"
    case update = "UPD"
    case complete = "CPL"
    case call = "CLL"
    case `return` = "RTN"

    /// Whether the topic ends with a correlation id: requests and responses.
    public var isTwoWay: Bool {
        switch self {
        case .advertise, .deadvertise, .channel, .associate, .ioValue: false
        default: true
        }
    }

    /// The event that answers this one; nil for events that nobody answers.
    var responseType: CommunicationEventType? {
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
