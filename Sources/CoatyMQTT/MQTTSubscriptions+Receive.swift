import Coaty

/// The delivery of received messages.
extension MQTTSubscriptions {
    /// Returns the selectors of raw events and IO routes that a topic matches, and the name of the topic for them.
    private func match(_ topic: String) -> (selectors: [EventSelector], name: String) {
        let key = topics.key(topic)
        var selectors: [EventSelector] = []
        var name = topic
        if let entry = entries[key] {
            selectors = entry.requests.map(\.selector).filter(\.isRawOrRoute)
            // A broker that changes topics delivers it under another name.
            if !selectors.isEmpty { name = entry.filter }
        }
        for wildcard in wildcards.filters(matching: key) {
            selectors += entries[wildcard]?.requests.map(\.selector).filter(\.isRawOrRoute) ?? []
        }
        return (selectors, name)
    }

    /// The kind of message on a topic.
    private enum Meaning {
        case origin(InboundMessage.Origin)
        /// An event of another namespace, which was matched by a wildcard.
        case foreign
        /// Not an event of Coaty.
        case unreadable
    }

    private func meaning(of topic: String, for session: BindingSession) -> Meaning {
        guard MQTTTopic.isCoaty(topic) else {
            let (selectors, name) = match(topic)
            return .origin(.raw(topic: name, selectors: selectors, sourceId: nil))
        }
        guard let address = topics.address(of: topic) else { return .unreadable }
        // A session without identity only observes traffic and does not belong to an IO context.
        if address.eventType == .ioValue, session.identityId != nil {
            let selectors = match(topic).selectors.filter { if case .ioRoute = $0 { true } else { false } }
            return .origin(.raw(topic: topic, selectors: selectors, sourceId: address.sourceId))
        }
        guard session.observesAllNamespaces || WireName(address.namespace) == WireName(session.namespace) else {
            return .foreign
        }
        return .origin(.event(address))
    }

    /// Reports a message to a session according to its topic.
    func receive(_ topic: String, _ payload: [UInt8], isRetained: Bool = false, for session: BindingSession) {
        switch meaning(of: topic, for: session) {
        case .origin(let origin):
            session.received(InboundMessage(origin, payload: payload, label: topic, isRetained: isRetained))
        case .foreign: break
        case .unreadable: session.dropped("a message on a topic that is not an event's", label: topic)
        }
    }

    /// Reports a message that was too long to a session.
    func dropTooLong(_ topic: String, for session: BindingSession) {
        var origin: InboundMessage.Origin?
        if case .origin(let named) = meaning(of: topic, for: session) { origin = named }
        session.dropped("a message that is too long", label: topic, origin: origin)
    }
}

extension EventSelector {
    var isRawOrRoute: Bool {
        switch self {
        case .raw, .ioRoute: true
        case .events, .responses, .traffic: false
        }
    }
}
