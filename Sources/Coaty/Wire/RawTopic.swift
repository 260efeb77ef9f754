/// Topics that are not Coaty's: of raw events and of external IO routes.
package enum RawTopic {
    /// The most bytes of a topic (MQTT 3.1.1, section 1.5.3).
    static let maximumLength = 65_535

    /// The most levels of a topic: mosquitto cuts the connection for more than 200.
    static let maximumLevels = 200

    private static let coatyPrefix = "coaty/"

    /// Whether the topic is one of Coaty's.
    static func isCoaty(_ topic: String) -> Bool { topic.utf8.starts(with: coatyPrefix.utf8) }

    /// Whether a raw event may be published on the topic.
    static func isPublishable(_ topic: String) -> Bool {
        isText(topic) && !isCoaty(topic) && topic.utf8.allSatisfy { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "+") }
    }

    /// Whether raw events may be observed by the topic filter: `+` stands for a level, `#` for all levels at the end (MQTT
    /// 3.1.1, section 4.7). A shared subscription is not taken: its messages go to one of several agents.
    package static func isObservable(_ filter: String) -> Bool {
        guard isText(filter), !isCoaty(filter), !filter.hasPrefix("$share/") else { return false }
        let levels = filter.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return levels.enumerated().allSatisfy { index, level in
            if level.count == 1, level.first == UInt8(ascii: "#") { return index == levels.count - 1 }
            return level.count == 1 && level.first == UInt8(ascii: "+")
                || level.allSatisfy { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "+") }
        }
    }

    /// Whether IO values may flow on the topic: an external one, or the IoValue topic of a source. Anything else would let
    /// a router make a source speak as somebody else.
    static func isIoRoute(_ topic: String) -> Bool {
        // What begins with $ is the broker's, or a subscription that is shared with others.
        guard isCoaty(topic) else { return isPublishable(topic) && !topic.hasPrefix("$") }
        guard isText(topic), let parsed = CommunicationTopic(topic), parsed.eventType == .ioValue else { return false }
        return parsed.eventTypeFilter == nil && CommunicationTopic.isValidLevel(parsed.namespace)
            && CommunicationTopic.isValidLevel(parsed.sourceId.string)
    }

    private static func isText(_ topic: String) -> Bool {
        !topic.isEmpty && topic.utf8.count <= maximumLength
            && topic.utf8.count { $0 == UInt8(ascii: "/") } < maximumLevels
            && topic.unicodeScalars.allSatisfy(CommunicationTopic.isTextual)
    }
}
