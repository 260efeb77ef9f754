/// How a broker treats `.` and `/` in topics. Everything that depends on it is in this file.
///
/// RabbitMQ carries MQTT over AMQP and translates `/` into `.` and back into `/`: a message that was published on
/// `coaty/3/ns/ADV::com.example.Job/<id>` is delivered as `coaty/3/ns/ADV::com/example/Job/<id>`. Filters without wildcards
/// match what was published; `+` stands for one level of the translated topic. It also translates `*` and `+` into each other.
public enum TopicDialect: String, Sendable, Hashable, CaseIterable {
    /// The broker delivers topics as they were published (MQTT 3.1.1, section 4.7).
    case plain
    /// The broker delivers `.` as `/`, as RabbitMQ does. Topics that differ in nothing else are the same to it.
    case slashes
}

extension TopicDialect {
    /// A form in which topics are equal if the broker takes them for equal.
    package func canonical(_ topic: String) -> String {
        switch self {
        case .plain: return topic
        case .slashes:
            guard topic.utf8.contains(UInt8(ascii: ".")) else { return topic }
            return String(decoding: topic.utf8.map { $0 == UInt8(ascii: ".") ? UInt8(ascii: "/") : $0 }, as: UTF8.self)
        }
    }

    /// A name as its sender wrote it.
    ///
    /// - Parameter pieces: its levels as they were delivered. A name holds no `/`, so they join with `.`.
    func name(_ pieces: some Collection<Substring.UTF8View>) -> String {
        let joined = pieces.lazy.map { Substring($0) }.joined(separator: ".")
        // A name holds no `+`.
        return self == .slashes ? joined.replacing("+", with: "*") : joined
    }

    /// Splits the levels behind `coaty/3/` into those of the namespace and the rest.
    ///
    /// With slashes a namespace may have several levels. The agent's own is known; of another one, the first level that names
    /// an event ends it.
    ///
    /// - Returns: nil if there is no event.
    func splitNamespace(
        _ levels: ArraySlice<Substring.UTF8View>,
        own: String
    ) -> (namespace: String, rest: ArraySlice<Substring.UTF8View>)? {
        guard let first = levels.first else { return nil }
        guard self == .slashes else { return (String(Substring(first)), levels.dropFirst()) }
        let ownLevels = canonical(own).utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if levels.count > ownLevels.count, zip(levels, ownLevels).allSatisfy({ $0.elementsEqual($1) }),
            MQTTTopic.eventType(ofLevel: levels[levels.startIndex + ownLevels.count]) != nil
        {
            return (own, levels.dropFirst(ownLevels.count))
        }
        guard let event = levels.dropFirst().firstIndex(where: { MQTTTopic.eventType(ofLevel: $0) != nil }) else {
            return nil
        }
        return (name(levels[..<event]), levels[event...])
    }

    /// The filter for events of all namespaces, whatever they are; nil if `+` stands for any namespace.
    func everyNamespace(_ prefix: String) -> String? { self == .slashes ? prefix + "#" : nil }

    /// Filters for all events of a namespace, or of all namespaces, with a number of ids behind the event's level.
    ///
    /// With slashes a dotted name has several levels, so only a filter for all that is below the namespace selects it.
    func wildcardFilter(prefix: String, idCount: Int) -> String {
        switch self {
        case .plain: prefix + String(repeating: "/+", count: idCount + 1)
        case .slashes: prefix + "/#"
        }
    }
}
