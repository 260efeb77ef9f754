import Synchronization

/// Who observes what: finds the observers of an inbound topic, and tells which topic filters the broker has to know.
final class SubscriptionTable: Sendable {
    /// What distinguishes the topics of one subscription from those of another.
    enum Key: Hashable, Sendable {
        case event(CommunicationEventType, filter: String?)
        case response(CommunicationEventType, correlationId: CoatyUUID)

        init(_ topic: CommunicationTopic) {
            if topic.eventType.isResponse, let correlationId = topic.correlationId {
                self = .response(topic.eventType, correlationId: correlationId)
            } else {
                self = .event(topic.eventType, filter: topic.eventTypeFilter)
            }
        }
    }

    private struct State {
        var dispatchers: [Key: any Dispatching] = [:]
        /// In the order in which they came, which is the order of the SUBSCRIBE packet after a connect.
        var order: [Key] = []
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Adds an observer.
    ///
    /// - Parameter changed: called under the table's lock with the topic filter that the broker has to learn, if any, so
    ///   that SUBSCRIBE and UNSUBSCRIBE go out in the order of the changes.
    func add<Event: CommunicationEvent>(
        _ key: Key,
        topicFilter: String,
        prepare: @escaping @Sendable (inout Event) -> Void,
        handler: @escaping @Sendable (Event) -> Void,
        onEnd: (@Sendable () -> Void)?,
        changed: (String) -> Void
    ) -> UInt64 {
        state.withLock { state in
            state.lastId += 1
            let observer = Dispatcher<Event>.Observer(id: state.lastId, handler: handler, onEnd: onEnd)
            if let dispatcher = state.dispatchers[key] as? Dispatcher<Event> {
                dispatcher.add(observer)
            } else {
                let dispatcher = Dispatcher<Event>(topicFilter: topicFilter, prepare: prepare)
                dispatcher.add(observer)
                state.dispatchers[key] = dispatcher
                state.order.append(key)
                changed(topicFilter)
            }
            return state.lastId
        }
    }

    /// Removes an observer.
    ///
    /// - Parameter changed: called under the table's lock with the topic filter that the broker can forget, if any.
    func remove(_ key: Key, id: UInt64, changed: (String) -> Void) {
        state.withLock { state in
            guard let dispatcher = state.dispatchers[key], dispatcher.remove(id) else { return }
            state.dispatchers[key] = nil
            state.order.removeAll { $0 == key }
            changed(dispatcher.topicFilter)
        }
    }

    /// The observers of a topic.
    func dispatcher(for topic: CommunicationTopic) -> (any Dispatching)? {
        state.withLock { $0.dispatchers[Key(topic)] }
    }

    /// All topic filters, in the order in which they came, while nothing changes.
    func withTopicFilters(_ body: ([String]) -> Void) {
        state.withLock { state in body(state.order.compactMap { state.dispatchers[$0]?.topicFilter }) }
    }

    /// Ends all observations.
    func removeAll() {
        let dispatchers = state.withLock { state in
            defer {
                state.dispatchers.removeAll()
                state.order.removeAll()
            }
            return Array(state.dispatchers.values)
        }
        for dispatcher in dispatchers { dispatcher.end() }
    }
}
