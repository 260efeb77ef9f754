/// Why an event can't be published or observed.
public enum CommunicationError: Error, Sendable, Equatable {
    /// A channel id, a type or a namespace is empty or holds `#`, `+`, `/` or control characters.
    case invalidTopicLevel(String)
    /// A topic or topic filter is not valid MQTT, or is one of Coaty's own.
    case invalidTopic(String)
    /// As many publications wait for the link as may; the new one is refused, what waits is kept.
    case queueFull(publications: Int, bytes: Int)
    /// A request needs somebody who answers now, and the link is down.
    case offline
    /// The event did not come in as a request and so can't be answered.
    case notARequest
    /// The IO source uses raw values and the value is JSON, or the other way round.
    case incompatibleIoValue
}

extension CommunicationError: CustomStringConvertible {
    /// The error in words.
    public var description: String {
        switch self {
        case .invalidTopicLevel(let text): "\"\(text)\" is empty or holds #, +, / or control characters"
        case .invalidTopic(let text): "\"\(text)\" is no valid topic outside of Coaty's own"
        case .queueFull(let publications, let bytes):
            "\(publications) publications of \(bytes) bytes wait for the broker already"
        case .offline: "not connected to the broker"
        case .notARequest: "the event is no request that came in"
        case .incompatibleIoValue: "the IO source takes raw values only, or JSON values only"
        }
    }
}
