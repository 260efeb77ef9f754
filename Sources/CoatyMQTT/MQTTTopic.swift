import Coaty

/// The topics of Coaty's events (Coaty MQTT communication protocol, version 3):
/// `coaty/3/<namespace>/<EVENT>[:<name>]/<sourceId>[/<correlationId>]`, where the name of an Advertise or Update event
/// is a core type or, after a second colon, an object type.
enum MQTTTopic {
    /// The beginning of all topics of this version.
    static let prefix = "coaty/3/"
    /// The prefix of all topics that are reserved for Coaty.
    static let reserved = "coaty/"
    /// Maximum size of a topic, in bytes (MQTT 3.1.1, section 1.5.3).
    static let maximumLength = 65_535
    /// Maximum number of levels: mosquitto closes the connection for more than 200.
    static let maximumLevels = 200

    private static let slash = UInt8(ascii: "/")
    private static let colon = UInt8(ascii: ":")

    // MARK: - Events

    /// Returns the topic of an event.
    static func topic(of address: EventAddress) -> String {
        var topic = prefix
        topic += address.namespace
        topic += "/"
        topic += address.eventType.code
        if let name = address.name { append(name, to: &topic) }
        topic += "/"
        topic += address.sourceId.string
        if let correlationId = address.correlationId {
            topic += "/"
            topic += correlationId.string
        }
        return topic
    }

    /// Returns the topic filters of a selector; several only for traffic. They do not overlap.
    ///
    /// - Parameter namespace: the namespace; nil for all namespaces.
    static func filters(of selector: EventSelector, namespace: String?, dialect: TopicDialect) -> [String] {
        if namespace == nil, let filter = dialect.everyNamespace(prefix), !selector.isRawOrRoute { return [filter] }
        switch selector {
        case .events(let type, let name):
            var filter = prefix + (namespace ?? "+") + "/" + type.code
            if let name { append(name, to: &filter) }
            return [filter + (type.isTwoWay ? "/+/+" : "/+")]
        case .responses(let type, let correlationId):
            return [prefix + (namespace ?? "+") + "/" + type.code + "/+/" + correlationId.string]
        case .raw(let filter): return [filter.text]
        case .ioRoute(let route): return [route.text]
        case .traffic(let types):
            let filters = [false, true].flatMap { isTwoWay in
                let wanted = CommunicationEventType.allCases.filter { $0.isTwoWay == isTwoWay && types.contains($0) }
                // A wildcard can't match a part of a level.
                guard wanted.contains(where: \.hasName) else {
                    return wanted.flatMap {
                        Self.filters(of: .events($0, name: nil), namespace: namespace, dialect: dialect)
                    }
                }
                return [dialect.wildcardFilter(prefix: prefix + (namespace ?? "+"), idCount: isTwoWay ? 2 : 1)]
            }
            // With slashes, one filter matches everything, and a second one would deliver events twice.
            return filters.first { $0.hasSuffix("/#") }.map { [$0] } ?? filters
        }
    }

    private static func append(_ name: EventName, to topic: inout String) {
        topic += name.isObjectType ? "::" : ":"
        topic += name.text
    }

    /// Returns the address of an event; nil if a topic is not that of an event.
    ///
    /// Additional levels between the event and the ids belong to the name, which some brokers have split: see
    /// ``TopicDialect``.
    ///
    /// - Parameter namespace: the agent's namespace.
    static func address(of topic: String, namespace: String, dialect: TopicDialect) -> EventAddress? {
        // Compares bytes: a level may begin with a combining mark, which Swift would combine with the character before
        // it.
        guard topic.utf8.starts(with: prefix.utf8) else { return nil }
        let all = topic.utf8.split(separator: slash, omittingEmptySubsequences: false)
        guard all.count >= 5, let (space, levels) = dialect.splitNamespace(all[2...], own: namespace),
            let event = levels.first, let type = eventType(ofLevel: event)
        else { return nil }
        let idCount = type.isTwoWay ? 2 : 1
        guard levels.count > idCount else { return nil }
        let ids = levels.suffix(idCount).map { CoatyUUID(wire: String(Substring($0))) }
        let pieces = [event.dropFirst(3)] + levels.dropFirst().dropLast(idCount)
        guard let name = name(of: type, pieces, dialect) else { return nil }
        return EventAddress(
            type,
            name: name,
            namespace: space,
            sourceId: ids[0],
            correlationId: type.isTwoWay ? ids[1] : nil
        )
    }

    /// - Parameter pieces: the levels of the name, the first with its colon.
    /// - Returns: nil if such a name is not valid; a name that is nil if there is none.
    private static func name(
        of type: CommunicationEventType,
        _ pieces: [Substring.UTF8View],
        _ dialect: TopicDialect
    ) -> EventName?? {
        guard let first = pieces.first, !first.isEmpty else { return pieces.count == 1 ? .some(nil) : .none }
        guard first.first == colon, pieces.count == 1 || type.hasName else { return .none }
        let hasObjectType = type == .advertise || type == .update
        if hasObjectType, first.dropFirst().first == colon {
            return .objectType(WireName(dialect.name([first.dropFirst(2)] + pieces.dropFirst())))
        }
        // A core type contains no dot.
        guard !hasObjectType || pieces.count == 1 else { return .none }
        let name = WireName(dialect.name([first.dropFirst()] + pieces.dropFirst()))
        return hasObjectType ? .coreType(name) : .name(name)
    }

    /// Returns the event type in a level of a topic; nil if there is none.
    static func eventType(ofLevel level: Substring.UTF8View) -> CommunicationEventType? {
        guard let code = level.count >= 3 ? level.prefix(3) : nil,
            level.count == 3 || level.dropFirst(3).first == colon
        else { return nil }
        return CommunicationEventType.byCode[String(Substring(code))]
    }

    // MARK: - Rules

    /// Returns whether a topic is reserved for Coaty.
    static func isCoaty(_ topic: String) -> Bool { topic.utf8.starts(with: reserved.utf8) }

    /// Returns whether a topic becomes one of Coaty's at some broker, so that raw events must not use it: RabbitMQ
    /// delivers `.` as `/`.
    private static func isReserved(_ topic: String) -> Bool {
        isCoaty(topic) || topic.utf8.starts(with: "coaty.".utf8)
    }

    /// Returns whether IO values may be sent on a route: an external topic, or the IoValue topic of a source. Other
    /// routes are refused, because a router could otherwise make a source publish under another name.
    static func isIoRoute(_ topic: String) -> Bool {
        // Topics that begin with $ belong to the broker, or are subscriptions that are shared with other clients.
        guard isCoaty(topic) else { return isPublishable(topic) }
        guard isText(topic), let address = address(of: topic, namespace: "", dialect: .plain),
            address.eventType == .ioValue, address.name == nil
        else { return false }
        return WireName.isValid(address.namespace) && WireName.isValid(address.sourceId.string)
    }

    /// Returns whether raw events may be published on a topic: it has no wildcards and control characters. Topics that
    /// begin with `$` are reserved for the broker: `$CONTROL` administers it with the gateway's credentials.
    static func isPublishable(_ topic: String) -> Bool {
        isText(topic) && !isReserved(topic) && topic.utf8.first != UInt8(ascii: "$")
            && topic.utf8.allSatisfy { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "+") }
    }

    /// Returns whether a text is a topic filter: `+` matches one level, `#` all remaining levels (MQTT 3.1.1, section
    /// 4.7). A shared subscription is not accepted, because each of its messages is sent to only one of several agents.
    static func isObservable(_ filter: String) -> Bool {
        guard isText(filter), !isReserved(filter), !filter.hasPrefix("$share/") else { return false }
        let levels = filter.utf8.split(separator: slash, omittingEmptySubsequences: false)
        return levels.enumerated().allSatisfy { index, level in
            if level.count == 1, level.first == UInt8(ascii: "#") { return index == levels.count - 1 }
            return level.count == 1 && level.first == UInt8(ascii: "+")
                || level.allSatisfy { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "+") }
        }
    }

    private static func isText(_ topic: String) -> Bool {
        !topic.isEmpty && topic.utf8.count <= maximumLength
            && topic.utf8.count { $0 == slash } < maximumLevels
            && topic.unicodeScalars.allSatisfy(WireName.isTextual)
    }
}

extension CommunicationEventType {
    /// The event's code in topics.
    var code: String {
        switch self {
        case .advertise: "ADV"
        case .deadvertise: "DAD"
        case .channel: "CHN"
        case .associate: "ASC"
        case .ioValue: "IOV"
        case .discover: "DSC"
        case .resolve: "RSV"
        case .query: "QRY"
        case .retrieve: "RTV"
        case .update: "UPD"
        case .complete: "CPL"
        case .call: "CLL"
        case .return: "RTN"
        }
    }

    fileprivate static let byCode = Dictionary(uniqueKeysWithValues: allCases.map { ($0.code, $0) })

    /// Whether topics of the event have a name.
    fileprivate var hasName: Bool {
        switch self {
        case .advertise, .channel, .associate, .update, .call: true
        case .deadvertise, .ioValue, .discover, .resolve, .query, .retrieve, .complete, .return: false
        }
    }
}

/// The rules of MQTT for raw events and IO routes, for checks before an agent is called.
public enum MQTTTopicRules {
    /// Returns whether raw events may be published on a topic: it does not begin with `coaty/`, `coaty.` or `$`, has 1
    /// to 65,535 bytes, at most 200 levels, and no wildcards and control characters.
    public static func isPublishable(_ topic: String) -> Bool { MQTTTopic.isPublishable(topic) }

    /// Returns whether raw events may be observed by a topic filter, which may contain wildcards.
    public static func isObservable(_ filter: String) -> Bool { MQTTTopic.isObservable(filter) }

    /// Returns whether a topic may be the external route of an IO source.
    public static func isExternalRoute(_ topic: String) -> Bool {
        !MQTTTopic.isCoaty(topic) && MQTTTopic.isIoRoute(topic)
    }
}
