/// Who observes what, and how each subscription stands with the broker.
struct SubscriptionTable: Sendable {
    private enum Standing {
        /// Not asked for: the session is not connected.
        case offline
        /// The broker's answer is awaited.
        case awaited
        case granted
        case refused

        var status: SubscriptionStatus? {
            switch self {
            case .offline: .offline
            case .awaited: nil
            case .granted: .standing
            case .refused: .refused
            }
        }
    }

    private struct Entry {
        let dispatcher: any Dispatching
        /// The request that the present answer belongs to.
        var ticket: UInt64
        var standing: Standing
    }

    private var entries: [EventSelector: Entry] = [:]
    /// Those of the requests that the present period began with that the broker has not answered.
    private var unanswered: Set<UInt64> = []
    /// Tickets also tell the order in which subscriptions came.
    private var lastTicket: UInt64 = 0

    private mutating func nextTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Number of subscriptions.
    var count: Int { entries.count }

    /// Number of subscriptions that the broker refuses.
    var refusedCount: Int { entries.values.count { $0.standing == .refused } }

    /// Number of the requests that the present period began with that the broker has not answered.
    var unansweredCount: Int { unanswered.count }

    /// Adds an observer.
    ///
    /// - Parameters:
    ///   - isConnected: whether the session can ask the broker now.
    ///   - makeDispatcher: called for the first observer of the selector.
    /// - Returns: the request to send, if any, and how the subscription stands; nil where the broker's answer is awaited.
    mutating func add<Event: Sendable>(
        _ selector: EventSelector,
        _ observer: Dispatcher<Event>.Observer,
        isConnected: Bool,
        makeDispatcher: () -> Dispatcher<Event>
    ) -> (request: SubscriptionRequest?, status: SubscriptionStatus?) {
        if let entry = entries[selector], let dispatcher = entry.dispatcher as? Dispatcher<Event> {
            dispatcher.add(observer)
            return (nil, entry.standing.status)
        }
        let dispatcher = makeDispatcher()
        dispatcher.add(observer)
        let ticket = nextTicket()
        entries[selector] = Entry(
            dispatcher: dispatcher,
            ticket: ticket,
            standing: isConnected ? .awaited : .offline
        )
        guard isConnected else { return (nil, .offline) }
        return (SubscriptionRequest(selector: selector, ticket: ticket, isEssential: observer.isPermanent), nil)
    }

    /// Removes an observer.
    ///
    /// - Returns: the observer, for the caller to release outside of locks: it may hold other subscriptions, which end then;
    ///   and whether nobody observes the selector any more.
    mutating func remove(_ selector: EventSelector, observer id: UInt64) -> (removed: (any Sendable)?, isLast: Bool) {
        guard let entry = entries[selector] else { return (nil, false) }
        let (observer, isEmpty) = entry.dispatcher.remove(id)
        if isEmpty { entries[selector] = nil }
        return (observer, isEmpty)
    }

    /// The observers of a selector.
    func dispatcher(for selector: EventSelector) -> (any Dispatching)? { entries[selector]?.dispatcher }

    /// The observers of all selectors.
    var dispatchers: [any Dispatching] { entries.values.map(\.dispatcher) }

    // MARK: - Periods

    /// Begins a period.
    ///
    /// - Returns: a request for each subscription, in the order in which they came.
    mutating func begin() -> [SubscriptionRequest] {
        let selectors = entries.sorted { $0.value.ticket < $1.value.ticket }.map(\.key)
        let requests = selectors.map { selector in
            let ticket = nextTicket()
            entries[selector]?.ticket = ticket
            entries[selector]?.standing = .awaited
            let isEssential = entries[selector]?.dispatcher.isPermanent ?? false
            return SubscriptionRequest(selector: selector, ticket: ticket, isEssential: isEssential)
        }
        unanswered = Set(requests.map(\.ticket))
        return requests
    }

    /// Ends a period.
    ///
    /// - Returns: the observers to tell that their subscriptions don't stand any more.
    mutating func end() -> [StatusObserver] {
        unanswered = []
        var observers: [StatusObserver] = []
        for (selector, entry) in entries where entry.standing != .offline {
            entries[selector]?.standing = .offline
            observers += entry.dispatcher.statusObservers
        }
        return observers
    }

    /// Takes the broker's answer to a request.
    ///
    /// - Returns: whether the present period began with the request and this is its first answer; and the observers to tell.
    mutating func answer(
        _ request: SubscriptionRequest,
        isGranted: Bool
    ) -> (isInitial: Bool, observers: [StatusObserver]) {
        let isInitial = unanswered.remove(request.ticket) != nil
        guard let entry = entries[request.selector], entry.ticket == request.ticket, entry.standing != .offline else {
            return (isInitial, [])
        }
        entries[request.selector]?.standing = isGranted ? .granted : .refused
        return (isInitial, entry.dispatcher.statusObservers)
    }

    /// Ends all observations but the permanent ones.
    ///
    /// - Returns: functions that tell the observers and release them, to be called outside of locks.
    mutating func removeAll() -> [@Sendable () -> Void] {
        let ended = entries.values.map { $0.dispatcher.removeAll() }
        entries = entries.filter { !$0.value.dispatcher.isEmpty }
        return ended
    }
}
