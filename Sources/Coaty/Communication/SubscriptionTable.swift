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

    /// How many sessions in a row may be lost while the broker has not answered what they began with. A broker may cut the
    /// link upon what it won't process (MQTT 3.1.1, section 4.8), each time; so the next session subscribes one by one, to
    /// learn upon which subscription that is.
    static let maximumLostSessions = 2

    private struct Entry {
        let dispatcher: any Dispatching
        /// Tells the order in which entries came, which is the order of the SUBSCRIBE packet after a connect.
        let serial: UInt64
        /// Whether it is one of the agent's own, which are never left out.
        let isPermanent: Bool
        /// The packet of this session that asks for it; nil where none does.
        var ticket: UInt64?
        /// nil while the broker's answer is awaited.
        var status: SubscriptionStatus?
        /// When the link was cut upon it; nil where it was not.
        var cutAt: ContinuousClock.Instant?
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The keys of topic filters with wildcards.
        var wildcards: [Key: TopicFilter] = [:]
        /// The ticket of the packet that began the session; nil while the link is down.
        var session: UInt64?
        /// The entries that have a packet of their own in the session, and are not acknowledged, by ticket.
        var awaited: [UInt64: Key] = [:]
        /// The packet that must be answered before the session counts as one that holds.
        var pending: UInt64?
        /// How many sessions in a row did not come to hold.
        var lostSessions = 0
        var lastId: UInt64 = 0

        /// Whether the session subscribes one by one, and is not done with it.
        var isOneByOne: Bool { pending != nil && lostSessions >= SubscriptionTable.maximumLostSessions }

        mutating func nextId() -> UInt64 {
            lastId += 1
            return lastId
        }

        /// Goes on when the pending packet has been answered: the oldest entry that was not asked for is next.
        mutating func advance(_ subscribe: (String, UInt64) -> Void) {
            let waiting = isOneByOne ? entries.filter { $0.value.ticket == nil && $0.value.cutAt == nil } : [:]
            guard let (key, entry) = waiting.min(by: { $0.value.serial < $1.value.serial }) else {
                pending = nil
                lostSessions = 0
                return
            }
            let ticket = nextId()
            pending = ticket
            awaited[ticket] = key
            entries[key]?.ticket = ticket
            subscribe(entry.dispatcher.topicFilter, ticket)
        }

        /// - Returns: those to tell that the status of an entry has changed.
        mutating func settle(_ key: Key, _ status: SubscriptionStatus) -> [StatusObserver] {
            entries[key]?.status = status
            return entries[key]?.dispatcher.statusObservers ?? []
        }
    }

    private let state = Mutex(State())
    private let retryInterval: Duration

    /// - Parameter retryInterval: how long a subscription upon which the link was cut is left out at least; then a connect
    ///   asks for it again.
    init(retryInterval: Duration = .seconds(600)) {
        self.retryInterval = retryInterval
    }

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
            let id = state.nextId()
            let observer = Dispatcher<Event>.Observer(
                id: id,
                handler: handler,
                onEnd: onEnd,
                isPermanent: isPermanent,
                status: status
            )
            if let entry = state.entries[key], let dispatcher = entry.dispatcher as? Dispatcher<Event> {
                dispatcher.add(observer)
                return (id, entry.status)
            }
            let dispatcher = Dispatcher<Event>(topicFilter: topicFilter, decode: decode)
            dispatcher.add(observer)
            var entry = Entry(dispatcher: dispatcher, serial: id, isPermanent: isPermanent)
            if state.session == nil {
                entry.status = .offline
            } else if !state.isOneByOne {
                entry.ticket = id
                state.awaited[id] = key
            }
            state.entries[key] = entry
            if case .topic = key {
                let filter = TopicFilter(topicFilter)
                if filter.hasWildcards { state.wildcards[key] = filter }
            }
            if let ticket = entry.ticket { changed(topicFilter, ticket) }
            return (id, entry.status)
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
                if let ticket = entry.ticket {
                    state.awaited[ticket] = nil
                    changed(entry.dispatcher.topicFilter)
                }
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
    /// - Parameter body: called while nothing changes, with the topic filters to begin with, in the order in which they came,
    ///   and the ticket of the packet that subscribes to them.
    func open(_ body: (_ topicFilters: [String], _ ticket: UInt64) -> Void) {
        state.withLock { state in
            let ticket = state.nextId()
            state.session = ticket
            state.pending = ticket
            let isOneByOne = state.isOneByOne
            let retry = ContinuousClock.now - retryInterval
            var first: [(serial: UInt64, topicFilter: String)] = []
            for (key, var entry) in state.entries {
                if !isOneByOne, let cutAt = entry.cutAt, cutAt <= retry { entry.cutAt = nil }
                if entry.cutAt == nil { entry.status = nil }
                entry.ticket = entry.isPermanent || !isOneByOne && entry.cutAt == nil ? ticket : nil
                if entry.ticket != nil { first.append((entry.serial, entry.dispatcher.topicFilter)) }
                state.entries[key] = entry
            }
            body(first.sorted { $0.serial < $1.serial }.map(\.topicFilter), ticket)
        }
    }

    /// Ends a session, and tells that its subscriptions don't stand any more.
    ///
    /// - Parameter body: called while nothing changes; returns the tickets of the packets that did not go out, or nil where the
    ///   session was left and not lost.
    /// - Returns: the topic filter upon which the link was cut, which is left out from now on; nil where none is known.
    @discardableResult
    func close(_ body: () -> Set<UInt64>?) -> String? {
        let (told, cut) = state.withLock { state -> ([(SubscriptionStatus, [StatusObserver])], String?) in
            var cut: Key?
            if let unsent = body(), let pending = state.pending, !unsent.contains(pending) {
                if state.isOneByOne { cut = state.awaited[pending] }
                state.lostSessions += 1
            }
            state.session = nil
            state.pending = nil
            state.awaited = [:]
            if let cut { state.entries[cut]?.cutAt = .now }
            var told: [(SubscriptionStatus, [StatusObserver])] = []
            for (key, entry) in state.entries {
                state.entries[key]?.ticket = nil
                let status = entry.cutAt == nil && key != cut ? SubscriptionStatus.offline : .refused
                if entry.status != status { told.append((status, state.settle(key, status))) }
            }
            return (told, cut.flatMap { state.entries[$0]?.dispatcher.topicFilter })
        }
        for (status, observers) in told { for observer in observers { observer.tell(status) } }
        return cut
    }

    /// Notes that the broker has acknowledged a packet, and tells those who wait for it. A packet of a session that is over,
    /// or for nobody who is still there, does not count.
    ///
    /// - Parameter subscribe: called under the table's lock with the topic filter that is next where the session subscribes one
    ///   by one, and its ticket.
    func acknowledge(_ ticket: UInt64, refused: [String], subscribe: (String, UInt64) -> Void) {
        let refused = Set(refused.map(TopicLevel.init))
        let told = state.withLock { state -> [(SubscriptionStatus, [StatusObserver])] in
            let keys =
                if ticket == state.session {
                    state.entries.filter { $0.value.ticket == ticket && $0.value.status == nil }.map(\.key)
                } else {
                    state.awaited.removeValue(forKey: ticket).map { [$0] } ?? []
                }
            if ticket == state.pending { state.advance(subscribe) }
            return keys.map { key in
                let topicFilter = state.entries[key].map { TopicLevel($0.dispatcher.topicFilter) }
                let status = topicFilter.map(refused.contains) ?? false ? SubscriptionStatus.refused : .standing
                return (status, state.settle(key, status))
            }
        }
        for (status, observers) in told { for observer in observers { observer.tell(status) } }
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
            state.lostSessions = 0
            return ended
        }
        for end in ended { end() }
    }
}
