import Coaty

/// What a message is for.
extension MQTTSubscriptions {
    /// The selectors of raw events and IO routes that a topic matches, and the topic's name for them.
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

    /// Reports a message to a session as what its topic says.
    func receive(_ topic: String, _ payload: [UInt8], for session: BindingSession) {
        guard MQTTTopic.isCoaty(topic) else {
            let (selectors, name) = match(topic)
            let origin = InboundMessage.Origin.raw(topic: name, selectors: selectors, sourceId: nil)
            return session.received(InboundMessage(origin, payload: payload, label: topic))
        }
        guard let address = topics.address(of: topic) else {
            return session.dropped("a message on a topic that is not an event's", label: topic)
        }
        // A session without identity observes traffic, and takes part in no IO context.
        if address.eventType == .ioValue, session.identityId != nil {
            let selectors = match(topic).selectors.filter { if case .ioRoute = $0 { true } else { false } }
            let origin = InboundMessage.Origin.raw(topic: topic, selectors: selectors, sourceId: address.sourceId)
            return session.received(InboundMessage(origin, payload: payload, label: topic))
        }
        // A wildcard may bring in events of other namespaces.
        guard session.observesAllNamespaces || WireName(address.namespace) == WireName(session.namespace) else {
            return
        }
        session.received(InboundMessage(.event(address), payload: payload, label: topic))
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
