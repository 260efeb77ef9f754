/// The reason why an event can't be published or observed.
public enum CommunicationError: Error, Sendable, Equatable {
    /// A channel id, a type, an operation, an IO context name or a namespace is empty, too long, or contains `#`, `+`,
    /// `/` or control characters.
    case invalidName(String)
    /// A topic, a topic filter or an IO route is not valid for the binding, or is reserved by Coaty.
    case invalidTopic(String)
    /// The outbox is full. The new publication is refused; queued publications are kept.
    case queueFull(publications: Int, bytes: Int)
    /// The broker accepts no packet of this size. Both numbers are in bytes and include the topic.
    case exceedsBrokerLimit(size: Int, limit: Int)
    /// The broker has closed the connection because of publications like this one.
    case closesConnection
    /// The broker keeps no retained messages.
    case retainUnavailable
    /// The agent is not connected, or the communication manager that would send an answer is gone.
    case offline
    /// The event was not received as a request and can't be answered.
    case notARequest
    /// The IO source uses raw values and the value is JSON, or vice versa.
    case incompatibleIoValue
}

extension CommunicationError: CustomStringConvertible {
    /// The error as text.
    public var description: String {
        switch self {
        case .invalidName(let text):
            "\"\(text)\" is empty, longer than \(WireName.maximumLength) bytes, or holds #, +, / or control characters"
        case .invalidTopic(let text): "\"\(text)\" is not a valid topic outside of Coaty's own"
        case .queueFull(let publications, let bytes):
            "\(publications) publications of \(bytes) bytes are already queued for the broker"
        case .exceedsBrokerLimit(let size, let limit):
            "the publication needs a packet of \(size) bytes, and the broker accepts at most \(limit)"
        case .closesConnection:
            "the broker closes the connection when it receives such a publication; it may not permit the topic"
        case .retainUnavailable: "the broker keeps no retained messages"
        case .offline: "not connected to the broker"
        case .notARequest: "the event is not a request that came in"
        case .incompatibleIoValue: "the IO source accepts raw values only, or JSON values only"
        }
    }
}
