/// The observers of each selector, and the status of each subscription at the broker.
struct SubscriptionTable: Sendable {
    private enum Standing {
        /// Not requested: the session is not connected.
        case offline
        /// The broker has not yet answered.
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
        /// The ticket of the request that the current answer belongs to.
        var ticket: UInt64
        var standing: Standing
        /// Whether the broker has not yet answered a repeated request.
        var isRepeating = false
        /// Whether the subscription must be requested again after the current answer.
        var mustRepeat = false
    }

    private var entries: [EventSelector: Entry] = [:]
    /// The requests from the start of the current period that the broker has not answered.
    private var unanswered: Set<UInt64> = []
    /// Tickets also record the order in which subscriptions were added.
    private var lastTicket: UInt64 = 0

    private mutating func nextTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Number of subscriptions.
    var count: Int { entries.count }

    /// Number of subscriptions that the broker refuses.
    var refusedCount: Int { entries.values.count { $0.standing == .refused } }

    /// Number of requests from the start of the current period that the broker has not answered.
    var unansweredCount: Int { unanswered.count }

    /// Returns whether the broker has not yet answered a subscription.
    func isAwaited(_ selector: EventSelector) -> Bool { entries[selector]?.standing == .awaited }

    /// Adds an observer.
    ///
    /// - Parameters:
    ///   - isConnected: whether the session can send the request to the broker now.
    ///   - isGranted: whether the broker has granted the subscription already.
    ///   - makeDispatcher: called for the first observer of the selector.
    /// - Returns: the request to send, if any, and the status of the subscription; nil while the broker has not
    ///   answered.
    mutating func add<Event: Sendable>(
        _ selector: EventSelector,
        _ observer: Dispatcher<Event>.Observer,
        isConnected: Bool,
        isGranted: Bool = false,
        makeDispatcher: () -> Dispatcher<Event>
    ) -> (request: SubscriptionRequest?, status: SubscriptionStatus?) {
        if let entry = entries[selector], let dispatcher = entry.dispatcher as? Dispatcher<Event> {
            dispatcher.add(observer)
            return (nil, entry.standing.status)
        }
        let dispatcher = makeDispatcher()
        dispatcher.add(observer)
        let ticket = nextTicket()
        let standing = isGranted ? Standing.granted : isConnected ? .awaited : .offline
        entries[selector] = Entry(dispatcher: dispatcher, ticket: ticket, standing: standing)
        guard standing == .awaited else { return (nil, standing.status) }
        return (SubscriptionRequest(selector: selector, ticket: ticket, isEssential: observer.isPermanent), nil)
    }

    /// Returns requests for subscriptions that have no observers yet.
    mutating func requests(ahead selectors: [EventSelector]) -> [SubscriptionRequest] {
        selectors.map { SubscriptionRequest(selector: $0, ticket: nextTicket(), isEssential: false) }
    }

    /// Returns a request for a subscription that exists; nil if none can be sent now. While an answer is awaited, one
    /// more request follows it, however many are made.
    mutating func requestAgain(_ selector: EventSelector) -> SubscriptionRequest? {
        guard let entry = entries[selector] else { return nil }
        switch entry.standing {
        case .offline, .refused: return nil
        case .granted where !entry.isRepeating:
            let ticket = nextTicket()
            entries[selector]?.ticket = ticket
            entries[selector]?.isRepeating = true
            let isEssential = entry.dispatcher.isPermanent
            return SubscriptionRequest(selector: selector, ticket: ticket, isEssential: isEssential, isRepeated: true)
        case .awaited, .granted:
            entries[selector]?.mustRepeat = true
            return nil
        }
    }

    /// Removes an observer.
    ///
    /// - Returns: the observer, which the caller must release outside locks, because it may own other subscriptions
    ///   that end then; and whether the selector has no observers left.
    mutating func remove(_ selector: EventSelector, observer id: UInt64) -> (removed: (any Sendable)?, isLast: Bool) {
        guard let entry = entries[selector] else { return (nil, false) }
        let (observer, isEmpty) = entry.dispatcher.remove(id)
        if isEmpty { entries[selector] = nil }
        return (observer, isEmpty)
    }

    /// Returns the observers of a selector.
    func dispatcher(for selector: EventSelector) -> (any Dispatching)? { entries[selector]?.dispatcher }

    /// The observers of all selectors.
    var dispatchers: [any Dispatching] { entries.values.map(\.dispatcher) }

    // MARK: - Periods

    /// Begins a period.
    ///
    /// - Returns: a request for each subscription, in the order in which they were added.
    mutating func begin() -> [SubscriptionRequest] {
        let selectors = entries.sorted { $0.value.ticket < $1.value.ticket }.map(\.key)
        let requests = selectors.map { selector in
            let ticket = nextTicket()
            entries[selector]?.ticket = ticket
            entries[selector]?.standing = .awaited
            entries[selector]?.isRepeating = false
            entries[selector]?.mustRepeat = false
            let isEssential = entries[selector]?.dispatcher.isPermanent ?? false
            return SubscriptionRequest(selector: selector, ticket: ticket, isEssential: isEssential)
        }
        unanswered = Set(requests.map(\.ticket))
        return requests
    }

    /// Ends a period.
    ///
    /// - Returns: the observers to notify that their subscriptions are offline.
    mutating func end() -> [StatusObserver] {
        unanswered = []
        var observers: [StatusObserver] = []
        for (selector, entry) in entries where entry.standing != .offline {
            entries[selector]?.standing = .offline
            observers += entry.dispatcher.statusObservers
        }
        return observers
    }

    /// Handles the broker's answer to a request.
    ///
    /// - Returns: whether this is the first answer to a request from the start of the current period; the observers to
    ///   notify; and the request to send next, if any.
    mutating func answer(
        _ request: SubscriptionRequest,
        isGranted: Bool
    ) -> (isInitial: Bool, observers: [StatusObserver], next: SubscriptionRequest?) {
        let isInitial = unanswered.remove(request.ticket) != nil
        guard let entry = entries[request.selector], entry.ticket == request.ticket, entry.standing != .offline else {
            return (isInitial, [], nil)
        }
        entries[request.selector]?.standing = isGranted ? .granted : .refused
        entries[request.selector]?.isRepeating = false
        var next: SubscriptionRequest?
        if entry.mustRepeat {
            entries[request.selector]?.mustRepeat = false
            next = requestAgain(request.selector)
        }
        return (isInitial, entry.dispatcher.statusObservers, next)
    }

    /// Ends all observations except the permanent ones.
    ///
    /// - Returns: functions that notify and release the observers; call them outside locks.
    mutating func removeAll() -> [@Sendable () -> Void] {
        let ended = entries.values.map { $0.dispatcher.removeAll() }
        entries = entries.filter { !$0.value.dispatcher.isEmpty }
        return ended
    }
}
