/// The topic of an event: `coaty/3/<namespace>/<EVENT>[:<filter>]/<sourceId>[/<correlationId>]`.
public struct CommunicationTopic: Sendable {
    /// The namespace of the sender.
    public let namespace: String
    /// Which event.
    public let eventType: CommunicationEventType
    /// The event's filter: `Task`, `:com.example.Job`, a channel id, an operation, a context name; or nil.
    public let eventTypeFilter: String?
    /// Who sent the event.
    public let sourceId: CoatyUUID
    /// Which request the event makes or answers; nil for one-way events.
    public let correlationId: CoatyUUID?

    static let prefix = "coaty/3/"

    /// Reads a topic; nil where it is not that of a Coaty event.
    public init?(_ topic: String) {
        // By bytes: a level may begin with a mark that Swift would take for a part of the character before it.
        guard topic.utf8.starts(with: Self.prefix.utf8) else { return nil }
        let levels = topic.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard levels.count >= 5 else { return nil }
        let text = { (level: Substring.UTF8View) in String(Substring(level)) }
        let event = levels[3]
        guard let eventType = CommunicationEventType(rawValue: text(event.prefix(3))),
            levels.count == (eventType.isTwoWay ? 6 : 5)
        else { return nil }
        let rest = event.dropFirst(3)
        if rest.isEmpty {
            eventTypeFilter = nil
        } else {
            guard rest.first == UInt8(ascii: ":") else { return nil }
            eventTypeFilter = text(rest.dropFirst())
        }
        self.eventType = eventType
        namespace = text(levels[2])
        sourceId = CoatyUUID(wire: text(levels[4]))
        correlationId = eventType.isTwoWay ? CoatyUUID(wire: text(levels[5])) : nil
    }

    /// The topic that an event is published on.
    static func publication(
        _ eventType: CommunicationEventType,
        filter: String? = nil,
        namespace: String,
        sourceId: CoatyUUID,
        correlationId: CoatyUUID? = nil
    ) -> String {
        var topic = Self.prefix + namespace + "/" + eventType.rawValue
        if let filter { topic += ":" + filter }
        topic += "/" + sourceId.string
        if let correlationId { topic += "/" + correlationId.string }
        return topic
    }

    /// The topic filter that observes an event.
    ///
    /// - Parameter namespace: nil observes all namespaces.
    static func subscription(
        _ eventType: CommunicationEventType,
        filter: String? = nil,
        namespace: String?,
        correlationId: CoatyUUID? = nil
    ) -> String {
        var topic = Self.prefix + (namespace ?? "+") + "/" + eventType.rawValue
        if let filter { topic += ":" + filter }
        topic += "/+"
        if let correlationId {
            topic += "/" + correlationId.string
        } else if eventType.isTwoWay {
            topic += "/+"
        }
        return topic
    }

    /// Whether a text may stand in a topic as a filter, a namespace or a context name: not empty, and without
    /// `U+0000`, `#`, `+` and `/`.
    public static func isValidLevel(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 != 0 && $0 != 0x23 && $0 != 0x2B && $0 != 0x2F }
    }

    /// The most bytes that a filter, a namespace or a context name may have here: a topic has at most 65,535 in all.
    public static let maximumLevelLength = 1024

    /// Whether a text may stand in a topic that is published or observed here: a valid level of at most
    /// ``maximumLevelLength`` bytes, without control characters and Unicode noncharacters, for which a broker may cut the
    /// connection (MQTT 3.1.1, section 1.5.3).
    public static func isPublishableLevel(_ text: some StringProtocol) -> Bool {
        isValidLevel(text) && text.utf8.count <= maximumLevelLength && text.unicodeScalars.allSatisfy(isTextual)
    }

    /// Whether a character may stand in a topic without a broker cutting the connection for it.
    static func isTextual(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.isASCII else { return scalar.value >= 0x20 && scalar.value != 0x7F }
        return scalar.properties.generalCategory != .control && !scalar.properties.isNoncharacterCodePoint
    }
}
