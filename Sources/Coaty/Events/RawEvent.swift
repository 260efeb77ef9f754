/// Bytes on a topic outside of Coaty, for systems that do not use Coaty.
public struct RawEvent: Sendable {
    /// The topic in the binding's syntax; not one of Coaty's own topics.
    public let topic: String
    /// The bytes.
    public let payload: [UInt8]
    /// Whether the broker keeps the bytes for later subscribers. Not known for a received event.
    public let shouldRetain: Bool
    /// Whether the broker had kept the received bytes, and delivered them because of a new subscription.
    public let isRetained: Bool

    /// Creates an event.
    ///
    /// - Throws: ``CommunicationError/invalidTopic(_:)`` if the topic is empty. Whether the binding accepts it is
    ///   checked when the event is published.
    public static func with(
        topic: String,
        payload: [UInt8],
        shouldRetain: Bool = false
    ) throws(CommunicationError) -> RawEvent {
        guard !topic.isEmpty else { throw .invalidTopic(topic) }
        return RawEvent(topic: topic, payload: payload, shouldRetain: shouldRetain)
    }

    /// Creates an event with a text.
    ///
    /// - Throws: ``CommunicationError/invalidTopic(_:)``
    public static func with(
        topic: String,
        payload: String,
        shouldRetain: Bool = false
    ) throws(CommunicationError) -> RawEvent {
        try with(topic: topic, payload: Array(payload.utf8), shouldRetain: shouldRetain)
    }

    init(topic: String, payload: [UInt8], shouldRetain: Bool = false, isRetained: Bool = false) {
        self.topic = topic
        self.payload = payload
        self.shouldRetain = shouldRetain
        self.isRetained = isRetained
    }
}
