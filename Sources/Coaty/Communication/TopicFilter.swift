/// A topic filter of MQTT, with its wildcards `+` and `#` (MQTT 3.1.1, section 4.7).
struct TopicFilter: Sendable, Hashable {
    private let levels: [TopicLevel]

    init(_ filter: String) {
        levels = Self.levels(of: filter)
    }

    private static func levels(of topic: String) -> [TopicLevel] {
        topic.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { TopicLevel(String(Substring($0))) }
    }

    var hasWildcards: Bool { levels.contains { $0.text == "+" || $0.text == "#" } }

    func matches(_ topic: String) -> Bool {
        let topic = Self.levels(of: topic)
        for (index, level) in levels.enumerated() {
            if level.text == "#" { return !(index == 0 && topic[0].text.utf8.first == UInt8(ascii: "$")) }
            guard index < topic.count, level.text == "+" || level == topic[index] else { return false }
        }
        return topic.count == levels.count
    }
}
