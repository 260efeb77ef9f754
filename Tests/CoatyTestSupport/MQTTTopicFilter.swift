/// A topic filter with wildcards `+` and `#` (MQTT 3.1.1, section 4.7), compared byte by byte. It is the reference for
/// ``TopicTrie``.
struct MQTTTopicFilter: Sendable {
    private let levels: [[UInt8]]

    /// Parses a filter; nil if it has no wildcard.
    init?(_ filter: String) {
        levels = filter.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Array.init)
        guard levels.contains(where: { $0 == [UInt8(ascii: "+")] || $0 == [UInt8(ascii: "#")] }) else { return nil }
    }

    func matches(_ topic: String) -> Bool {
        let topic = topic.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            // Wildcards at the first level do not match topics that begin with `$`.
            if level == [UInt8(ascii: "#")] { return !(index == 0 && topic[0].first == UInt8(ascii: "$")) }
            guard index < topic.count,
                level == [UInt8(ascii: "+")] && !(index == 0 && topic[0].first == UInt8(ascii: "$"))
                    || topic[index].elementsEqual(level)
            else { return false }
        }
        return topic.count == levels.count
    }
}
