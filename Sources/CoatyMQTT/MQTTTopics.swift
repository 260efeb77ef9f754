import Coaty

/// Maps addresses and selectors of one session to topics.
struct MQTTTopics: Sendable {
    let namespace: String
    let observesAllNamespaces: Bool
    let dialect: TopicDialect

    func filters(of selector: EventSelector) -> [String] {
        MQTTTopic.filters(of: selector, namespace: observesAllNamespaces ? nil : namespace, dialect: dialect)
    }

    /// Returns a key that is equal for topics which the broker treats as equal.
    func key(_ topic: String) -> WireName { WireName(dialect.canonical(topic)) }

    func address(of topic: String) -> EventAddress? {
        MQTTTopic.address(of: topic, namespace: namespace, dialect: dialect)
    }
}

extension MQTTTopics {
    init(_ session: BindingSession, _ dialect: TopicDialect) {
        self.init(
            namespace: session.namespace,
            observesAllNamespaces: session.observesAllNamespaces,
            dialect: dialect
        )
    }
}

extension BindingSession {
    /// The MQTT client identifier: `Coaty` and the first 18 hex digits of the identity's id, or of any id if there is
    /// none (Coaty MQTT communication protocol, version 3).
    var clientId: String {
        "Coaty" + (identityId ?? CoatyUUID()).string.replacing("-", with: "").prefix(18)
    }
}
