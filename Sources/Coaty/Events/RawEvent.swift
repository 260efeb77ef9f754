/// Bytes on a topic of one's own, to talk with those who don't speak Coaty.
public struct RawEvent: Sendable {
    /// The topic; not one of Coaty's, which begin with `coaty/`.
    public let topic: String
    /// The bytes.
    public let payload: [UInt8]
    /// Whether the broker keeps them for those who subscribe later. Not known of an event that came in.
    public let shouldRetain: Bool

    /// Creates an event.
    ///
    /// - Throws: ``CommunicationError/invalidTopic(_:)`` where the topic is empty, holds wildcards or control characters, is
    ///   longer than 65,535 bytes, or is one of Coaty's.
    public static func with(
        topic: String,
        payload: [UInt8],
        shouldRetain: Bool = false
    ) throws(CommunicationError) -> RawEvent {
        guard RawTopic.isPublishable(topic) else { throw .invalidTopic(topic) }
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

    init(topic: String, payload: [UInt8], shouldRetain: Bool = false) {
        self.topic = topic
        self.payload = payload
        self.shouldRetain = shouldRetain
    }
}
