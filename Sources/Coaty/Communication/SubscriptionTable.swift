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
        /// Tells the order in which entries came, which is the order of the SUBSCRIBE packet after a connect. An entry that
        /// comes during a session has a packet of its own, with this as its ticket.
        let serial: UInt64
        /// nil while the broker's answer is awaited.
        var status: SubscriptionStatus?
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The keys of topic filters with wildcards.
        var wildcards: [Key: TopicFilter] = [:]
        /// The ticket of the packet that began the session; nil while the link is down.
        var session: UInt64?
        /// The entries that came later in the session and are not acknowledged, by ticket.
        var awaited: [UInt64: Key] = [:]
        var lastId: UInt64 = 0

        var topicFilters: [String] {
            entries.values.sorted { $0.serial < $1.serial }.map(\.dispatcher.topicFilter)
        }

        /// - Returns: those to tell that the status of an entry has changed.
        mutating func settle(_ key: Key, _ status: SubscriptionStatus) -> [StatusObserver] {
            entries[key]?.status = status
            return entries[key]?.dispatcher.statusObservers ?? []
        }
    }

    private let state = Mutex(State())

    /// Adds an observer.
    ///
    /// - Parameters:
    ///   - isPermanent: whether it stays when all observations are ended.
    ///   - status: who wants to know how the subscription stands.
    ///   - changed: called under the table's lock with the topic filter that the broker has to learn, if any, and the ticket
    ///     of its packet, so that SUBSCRIBE and UNSUBSCRIBE go out in the order of the changes.
    /// - Returns: the observer, and how the subscription stands; nil where the broker's answer is awaited.
    func add<Event: Sendable>(
        _ key: Key,
        topicFilter: String,
        decode: @escaping Dispatcher<Event>.Decoder,
        handler: @escaping @Sendable (Event) -> Void,
        onEnd: (@Sendable () -> Void)?,
        isPermanent: Bool,
        status: StatusObserver? = nil,
        changed: (String, UInt64) -> Void
    ) -> (id: UInt64, status: SubscriptionStatus?) {
        state.withLock { state in
            state.lastId += 1
            let observer = Dispatcher<Event>.Observer(
                id: state.lastId,
                handler: handler,
                onEnd: onEnd,
                isPermanent: isPermanent,
                status: status
            )
            if let entry = state.entries[key], let dispatcher = entry.dispatcher as? Dispatcher<Event> {
                dispatcher.add(observer)
                return (state.lastId, entry.status)
            } else {
                let dispatcher = Dispatcher<Event>(topicFilter: topicFilter, decode: decode)
                dispatcher.add(observer)
                let entry = Entry(
                    dispatcher: dispatcher,
                    serial: state.lastId,
                    status: state.session == nil ? .offline : nil
                )
                state.entries[key] = entry
                if state.session != nil { state.awaited[entry.serial] = key }
                if case .topic = key {
                    let filter = TopicFilter(topicFilter)
                    if filter.hasWildcards { state.wildcards[key] = filter }
                }
                changed(topicFilter, entry.serial)
                return (state.lastId, entry.status)
            }
        }
    }

    /// Removes an observer.
    ///
    /// - Parameter changed: called under the table's lock with the topic filter that the broker can forget, if any.
    func remove(_ key: Key, id: UInt64, changed: (String) -> Void) {
        // What an observer holds is released outside of the lock: it may hold other subscriptions, which end then.
        let removed = state.withLock { state -> (any Sendable)? in
            guard let entry = state.entries[key] else { return nil }
            let (observer, isEmpty) = entry.dispatcher.remove(id)
            if isEmpty {
                state.entries[key] = nil
                state.wildcards[key] = nil
                state.awaited[entry.serial] = nil
                changed(entry.dispatcher.topicFilter)
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

    /// Begins a session.
    ///
    /// - Parameter body: called while nothing changes, with all topic filters, in the order in which they came, and the ticket
    ///   of the packet that subscribes to them.
    func open(_ body: (_ topicFilters: [String], _ ticket: UInt64) -> Void) {
        state.withLock { state in
            state.lastId += 1
            state.session = state.lastId
            for key in state.entries.keys { state.entries[key]?.status = nil }
            body(state.topicFilters, state.lastId)
        }
    }

    /// Ends a session, and tells that its subscriptions don't stand any more.
    ///
    /// - Parameter body: called while nothing changes.
    func close(_ body: () -> Void) {
        let observers = state.withLock { state in
            body()
            state.session = nil
            state.awaited = [:]
            return state.entries.filter { $0.value.status != .offline }.keys.flatMap { state.settle($0, .offline) }
        }
        for observer in observers { observer.tell(.offline) }
    }

    /// Notes that the broker has acknowledged a packet, and tells those who wait for it. A packet of a session that is over,
    /// or for nobody who is still there, does not count.
    func acknowledge(_ ticket: UInt64, refused: [String]) {
        let refused = Set(refused.map(TopicLevel.init))
        let told = state.withLock { state -> [(SubscriptionStatus, [StatusObserver])] in
            let keys =
                if ticket == state.session {
                    state.entries.filter { $0.value.serial < ticket && $0.value.status == nil }.map(\.key)
                } else {
                    state.awaited.removeValue(forKey: ticket).map { [$0] } ?? []
                }
            return keys.map { key in
                let topicFilter = state.entries[key].map { TopicLevel($0.dispatcher.topicFilter) }
                let status = topicFilter.map(refused.contains) ?? false ? SubscriptionStatus.refused : .standing
                return (status, state.settle(key, status))
            }
        }
        for (status, observers) in told { for observer in observers { observer.tell(status) } }
    }

    /// All topic filters, in the order in which they came.
    var topicFilters: [String] { state.withLock(\.topicFilters) }

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
