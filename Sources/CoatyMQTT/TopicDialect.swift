/// The broker's treatment of `.` and `/` in topics. All code that depends on it is in this file.
///
/// RabbitMQ carries MQTT over AMQP and translates `/` to `.` and back to `/`: a message that was published on
/// `coaty/3/ns/ADV::com.example.Job/<id>` is delivered as `coaty/3/ns/ADV::com/example/Job/<id>`. Filters without
/// wildcards match the published topic; `+` matches one level of the translated topic. It also translates `*` and `+`
/// to each other.
public enum TopicDialect: String, Sendable, Hashable, CaseIterable {
    /// The broker delivers topics as they were published (MQTT 3.1.1, section 4.7).
    case plain
    /// The broker delivers `.` as `/`, like RabbitMQ. It treats topics as equal that differ in nothing else.
    case slashes
}

extension TopicDialect {
    /// Returns a form in which topics are equal if the broker treats them as equal.
    public func canonical(_ topic: String) -> String {
        switch self {
        case .plain: return topic
        case .slashes:
            guard topic.utf8.contains(UInt8(ascii: ".")) else { return topic }
            return String(decoding: topic.utf8.map { $0 == UInt8(ascii: ".") ? UInt8(ascii: "/") : $0 }, as: UTF8.self)
        }
    }

    /// Returns a name as its sender wrote it.
    ///
    /// - Parameter pieces: the levels of the name as delivered. A name contains no `/`, so they are joined with `.`.
    func name(_ pieces: some Collection<Substring.UTF8View>) -> String {
        let joined = pieces.lazy.map { Substring($0) }.joined(separator: ".")
        // A name contains no `+`.
        return self == .slashes ? joined.replacing("+", with: "*") : joined
    }

    /// Splits the levels after `coaty/3/` into those of the namespace and the rest.
    ///
    /// With slashes, a namespace may have several levels. The agent's own namespace is known; another namespace ends
    /// before the first level that is an event.
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

    /// Returns the filter for events of all namespaces, if it covers any number of levels; nil if `+` matches any
    /// namespace.
    func everyNamespace(_ prefix: String) -> String? { self == .slashes ? prefix + "#" : nil }

    /// Returns a filter for all events of a namespace, or of all namespaces, with a number of ids after the event's
    /// level.
    ///
    /// With slashes, a dotted name has several levels, so only a filter for everything below the namespace selects it.
    func wildcardFilter(prefix: String, idCount: Int) -> String {
        switch self {
        case .plain: prefix + String(repeating: "/+", count: idCount + 1)
        case .slashes: prefix + "/#"
        }
    }
}
