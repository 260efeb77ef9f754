import CoatyMQTT

/// A topic filter of a grant: `+` matches one level, `#` all remaining levels (MQTT 3.1.1, section 4.7).
struct TopicPattern: Sendable {
    private enum Level: Equatable {
        case name(ArraySlice<UInt8>)
        case one
        case all
    }

    private let levels: [Level]

    init(_ filter: String, _ dialect: TopicDialect) {
        levels = Self.levels(of: filter, dialect, hasWildcards: true)
    }

    /// Returns whether the pattern matches a topic.
    func covers(topic: String, _ dialect: TopicDialect) -> Bool {
        covers(Self.levels(of: topic, dialect, hasWildcards: false))
    }

    /// Returns whether the pattern matches every topic that a filter matches.
    func covers(filter: String, _ dialect: TopicDialect) -> Bool {
        covers(Self.levels(of: filter, dialect, hasWildcards: true))
    }

    private func covers(_ other: [Level]) -> Bool {
        // A wildcard does not match a first level that is reserved for the broker.
        if levels.first == .one || levels.first == .all, case .name(let name) = other.first,
            name.first == UInt8(ascii: "$")
        {
            return false
        }
        for (index, level) in levels.enumerated() {
            // It also matches the level above, where the other filter ends here.
            if level == .all { return true }
            guard index < other.count else { return false }
            switch (level, other[index]) {
            case (.name(let own), .name(let name)) where own == name: continue
            case (.one, .name), (.one, .one): continue
            // Every topic has a first level, so `+/#` matches the same topics as `#`.
            case (.one, .all) where index == 0: return levels.dropFirst().first == .all
            default: return false
            }
        }
        return other.count == levels.count
    }

    private static func levels(of text: String, _ dialect: TopicDialect, hasWildcards: Bool) -> [Level] {
        Array(dialect.canonical(text).utf8).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { level in
                guard hasWildcards, level.count == 1 else { return .name(level) }
                return switch level.first {
                case UInt8(ascii: "+"): .one
                case UInt8(ascii: "#"): .all
                default: .name(level)
                }
            }
    }
}
