/// One topic filter with wildcards `+` and `#` (MQTT 3.1.1, section 4.7), compared byte by byte: what ``TopicTrie`` is compared with.
struct MQTTTopicFilter: Sendable {
    private let levels: [[UInt8]]

    /// Reads a filter; nil if it has no wildcard.
    init?(_ filter: String) {
        levels = filter.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Array.init)
        guard levels.contains(where: { $0 == [UInt8(ascii: "+")] || $0 == [UInt8(ascii: "#")] }) else { return nil }
    }

    func matches(_ topic: String) -> Bool {
        let topic = topic.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            // Wildcards don't stand for a first level that is the broker's own.
            if level == [UInt8(ascii: "#")] { return !(index == 0 && topic[0].first == UInt8(ascii: "$")) }
            guard index < topic.count,
                level == [UInt8(ascii: "+")] && !(index == 0 && topic[0].first == UInt8(ascii: "$"))
                    || topic[index].elementsEqual(level)
            else { return false }
        }
        return topic.count == levels.count
    }
}
