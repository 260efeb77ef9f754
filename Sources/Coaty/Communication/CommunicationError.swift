/// Why an event can't be published or observed.
public enum CommunicationError: Error, Sendable, Equatable {
    /// A channel id, a type or a namespace is empty or holds `#`, `+`, `/` or control characters.
    case invalidTopicLevel(String)
    /// As many publications wait for the link as may; the new one is refused, what waits is kept.
    case queueFull(publications: Int, bytes: Int)
    /// A request needs somebody who answers now, and the link is down.
    case offline
    /// The event did not come in as a request and so can't be answered.
    case notARequest
}

extension CommunicationError: CustomStringConvertible {
    /// The error in words.
    public var description: String {
        switch self {
        case .invalidTopicLevel(let text): "\"\(text)\" is empty or holds #, +, / or control characters"
        case .queueFull(let publications, let bytes):
            "\(publications) publications of \(bytes) bytes wait for the broker already"
        case .offline: "not connected to the broker"
        case .notARequest: "the event is no request that came in"
        }
    }
}
