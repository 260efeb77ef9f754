import Synchronization

/// Who observes what: finds the observers of an inbound topic, and tells which topic filters the broker has to know.
final class SubscriptionTable: Sendable {
    /// What distinguishes the topics of one subscription from those of another.
    enum Key: Hashable, Sendable {
        case event(CommunicationEventType, filter: TopicLevel?)
        case response(CommunicationEventType, correlationId: TopicLevel)
        /// A topic filter of raw events or a topic of IO values, compared byte by byte as a level is.
        case topic(TopicLevel)

        init(_ topic: CommunicationTopic) {
            if topic.eventType.isResponse, let correlationId = topic.correlationId {
                self = .response(topic.eventType, correlationId: TopicLevel(correlationId.string))
            } else {
                self = .event(topic.eventType, filter: topic.eventTypeFilter.map(TopicLevel.init))
            }
        }
    }

    private struct Entry {
        let dispatcher: any Dispatching
        /// Tells the order in which entries came, which is the order of the SUBSCRIBE packet after a connect.
        let serial: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The keys of topic filters with wildcards.
        var wildcards: [Key: TopicFilter] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Adds an observer.
    ///
    /// - Parameters:
    ///   - isPermanent: whether it stays when all observations are ended.
    ///   - changed: called under the table's lock with the topic filter that the broker has to learn, if any, so that
    ///     SUBSCRIBE and UNSUBSCRIBE go out in the order of the changes.
    func add<Event: Sendable>(
        _ key: Key,
        topicFilter: String,
        decode: @escaping Dispatcher<Event>.Decoder,
        handler: @escaping @Sendable (Event) -> Void,
        onEnd: (@Sendable () -> Void)?,
        isPermanent: Bool,
        changed: (String) -> Void
    ) -> UInt64 {
        state.withLock { state in
            state.lastId += 1
            let observer = Dispatcher<Event>.Observer(
                id: state.lastId,
                handler: handler,
                onEnd: onEnd,
                isPermanent: isPermanent
            )
            if let dispatcher = state.entries[key]?.dispatcher as? Dispatcher<Event> {
                dispatcher.add(observer)
            } else {
                let dispatcher = Dispatcher<Event>(topicFilter: topicFilter, decode: decode)
                dispatcher.add(observer)
                state.entries[key] = Entry(dispatcher: dispatcher, serial: state.lastId)
                if case .topic = key {
                    let filter = TopicFilter(topicFilter)
                    if filter.hasWildcards { state.wildcards[key] = filter }
                }
                changed(topicFilter)
            }
            return state.lastId
        }
    }

    /// Removes an observer.
    ///
    /// - Parameter changed: called under the table's lock with the topic filter that the broker can forget, if any.
    func remove(_ key: Key, id: UInt64, changed: (String) -> Void) {
        // What an observer holds is released outside of the lock: it may hold other subscriptions, which end then.
        let removed = state.withLock { state -> (any Sendable)? in
            guard let dispatcher = state.entries[key]?.dispatcher else { return nil }
            let (observer, isEmpty) = dispatcher.remove(id)
            if isEmpty {
                state.entries[key] = nil
                state.wildcards[key] = nil
                changed(dispatcher.topicFilter)
            }
            return observer
        }
        withExtendedLifetime(removed) {}
    }

    /// The observers of a key.
    func dispatcher(for key: Key) -> (any Dispatching)? {
        state.withLock { $0.entries[key]?.dispatcher }
    }

    /// The observers of a topic that is not one of Coaty's.
    func dispatchers(forRawTopic topic: String) -> [any Dispatching] {
        state.withLock { state in
            var found = state.entries[.topic(TopicLevel(topic))].map { [$0.dispatcher] } ?? []
            for (key, filter) in state.wildcards where filter.matches(topic) {
                if let dispatcher = state.entries[key]?.dispatcher { found.append(dispatcher) }
            }
            return found
        }
    }

    /// All topic filters, in the order in which they came, while nothing changes.
    func withTopicFilters(_ body: ([String]) -> Void) {
        state.withLock { state in
            body(state.entries.values.sorted { $0.serial < $1.serial }.map(\.dispatcher.topicFilter))
        }
    }

    /// Ends the observations of a key; the broker keeps its subscription until they are released.
    func end(_ key: Key) {
        state.withLock { $0.entries[key]?.dispatcher }?.end()
    }

    /// Ends all observations but the permanent ones.
    func removeAll() {
        let ended = state.withLock { state in
            let ended = state.entries.values.map { $0.dispatcher.removeAll() }
            state.entries = state.entries.filter { !$0.value.dispatcher.isEmpty }
            state.wildcards = state.wildcards.filter { state.entries[$0.key] != nil }
            return ended
        }
        for end in ended { end() }
    }
}
