/// A topic filter of MQTT, with its wildcards `+` and `#` (MQTT 3.1.1, section 4.7).
struct TopicFilter: Sendable, Hashable {
    private let levels: [Substring]

    init(_ filter: String) {
        levels = filter.split(separator: "/", omittingEmptySubsequences: false)
    }

    func matches(_ topic: String) -> Bool {
        let topic = topic.split(separator: "/", omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            if level == "#" { return !(index == 0 && topic[0].hasPrefix("$")) }
            guard index < topic.count, level == "+" || level == topic[index] else { return false }
        }
        return topic.count == levels.count
    }
}
