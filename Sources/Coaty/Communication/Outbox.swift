import DequeModule

/// The operations that wait for the connection, in order: the one bounded queue between everybody who publishes and the binding.
///
/// Publications that were deferred and those that were handed over and are not yet written count against the same limits. What
/// is queued is kept; a new publication is refused when the queue is full. Subscriptions and join events don't count: they are
/// as many as are observed and shared.
struct Outbox: Sendable {
    /// What a request has in the outbox.
    private struct Owned {
        var queued = 0
        var queuedBytes = 0
        var unwritten = 0
        /// Whether the binding has taken any of it.
        var isTaken = false
    }

    /// Maximum number of operations that are withdrawn or undone and still in the queue, or half of the queue if that is more.
    static let maximumDead = 64
    /// How often a publication may be the one that is being written when the connection is lost: a broker may refuse it by
    /// closing the connection, each time.
    static let maximumAttempts = 5

    let limits: OutboxLimits
    /// Publications that are queued or not yet written.
    private(set) var publications = 0
    /// Their bytes.
    private(set) var bytes = 0
    private var queue = Deque<SessionOperation>()
    /// Publications that the binding took and did not yet report as written.
    private var unwritten = Deque<Publication>()
    /// The requests that are under way and have publications here.
    private var owned: [UInt64: Owned] = [:]
    /// The tickets of the subscriptions that are queued on their own.
    private var undoable: [EventSelector: UInt64] = [:]
    /// The tickets of those that were undone while they were queued.
    private var undone: Set<UInt64> = []
    /// How many publications in the queue are withdrawn.
    private var withdrawn = 0
    /// Whether the disconnect was taken, behind which nothing goes out.
    private var isClosed = false

    init(limits: OutboxLimits) {
        self.limits = limits
    }

    /// Number of operations that are queued, changes of subscriptions among them.
    var operations: Int { queue.count - undone.count - withdrawn }

    /// When the oldest publication was queued that is not yet written; nil if there is none. Join events don't count. Looks through all
    /// operations in front of it.
    var oldestQueued: ContinuousClock.Instant? {
        if let oldest = unwritten.first(where: { !$0.isJoinEvent }) { return oldest.queuedSince }
        for case .publish(let publication) in queue where !publication.isJoinEvent {
            guard publication.request.map({ owned[$0] != nil }) ?? true else { continue }
            return publication.queuedSince
        }
        return nil
    }

    /// Whether everything was handed over and is written.
    var isDrained: Bool { operations == 0 && unwritten.isEmpty }

    // MARK: - Queueing

    /// Queues publications, all or none.
    ///
    /// - Returns: whether the queue was empty, so that the binding may sleep.
    mutating func publish(_ new: [Publication]) throws(CommunicationError) -> Bool {
        let size = new.reduce(0) { $0 + $1.size }
        guard publications + new.count <= limits.publications, bytes + size <= limits.bytes else {
            throw .queueFull(publications: publications, bytes: bytes)
        }
        let wasEmpty = queue.isEmpty
        // Read once: an event may go out as two.
        let now = ContinuousClock.now
        for publication in new { append(publication, at: now) }
        return wasEmpty
    }

    private mutating func append(_ publication: Publication, at now: ContinuousClock.Instant) {
        var publication = publication
        if publication.queuedSince == nil { publication.queuedSince = now }
        publications += 1
        bytes += publication.size
        if let request = publication.request {
            owned[request, default: Owned()].queued += 1
            owned[request]?.queuedBytes += publication.size
        }
        queue.append(.publish(publication))
    }

    /// Queues a subscription.
    ///
    /// - Returns: whether the queue was empty.
    mutating func subscribe(_ request: SubscriptionRequest) -> Bool {
        undoable[request.selector] = request.ticket
        let wasEmpty = queue.isEmpty
        queue.append(.subscribe([request]))
        return wasEmpty
    }

    /// Queues the end of a subscription.
    ///
    /// A subscription that is still queued and is undone now does not go out at all: so a selector is queued twice at most,
    /// and the queue can't grow while the socket takes nothing. The end of a subscription
    /// goes out even if a new one follows: the new observer waits for the broker's answer.
    ///
    /// - Returns: whether the queue was empty.
    mutating func unsubscribe(_ selector: EventSelector) -> Bool {
        if let ticket = undoable.removeValue(forKey: selector) {
            undone.insert(ticket)
            compactIfNeeded()
            return false
        }
        let wasEmpty = queue.isEmpty
        queue.append(.unsubscribe(selector))
        return wasEmpty
    }

    /// Returns whether a request is queued and nothing of it was handed over.
    func isUnsent(request: UInt64) -> Bool { owned[request].map { !$0.isTaken } ?? false }

    /// Withdraws what is left of a request that has ended.
    mutating func withdraw(request: UInt64) {
        guard let left = owned.removeValue(forKey: request) else { return }
        publications -= left.queued
        bytes -= left.queuedBytes
        withdrawn += left.queued
        compactIfNeeded()
    }

    /// Takes what is dead out of the queue. Done seldom, since it looks at everything that is queued.
    private mutating func compactIfNeeded() {
        guard undone.count + withdrawn > max(Self.maximumDead, queue.count / 2) else { return }
        queue.removeAll { [undone, owned] operation in
            switch operation {
            case .subscribe(let requests): requests.first.map { undone.contains($0.ticket) } ?? false
            case .publish(let publication): publication.request.map { owned[$0] == nil } ?? false
            case .unsubscribe, .disconnect: false
            }
        }
        undone = []
        withdrawn = 0
    }

    // MARK: - Handing over

    /// Takes the next operation.
    mutating func next() -> SessionOperation? {
        while !isClosed, let operation = queue.popFirst() {
            switch operation {
            case .publish(let publication):
                if let request = publication.request {
                    guard owned[request] != nil else {
                        withdrawn -= 1
                        continue
                    }
                    owned[request]?.queued -= 1
                    owned[request]?.queuedBytes -= publication.size
                    owned[request]?.unwritten += 1
                    owned[request]?.isTaken = true
                }
                unwritten.append(publication)
            case .subscribe(let requests):
                // One that may be undone is alone.
                if requests.count == 1 {
                    if undone.remove(requests[0].ticket) != nil { continue }
                    if undoable[requests[0].selector] == requests[0].ticket { undoable[requests[0].selector] = nil }
                }
            case .disconnect: isClosed = true
            case .unsubscribe: break
            }
            return operation
        }
        return nil
    }

    /// Counts the oldest unwritten publication as done with.
    mutating func publicationDone() -> Publication? {
        guard let publication = unwritten.popFirst() else { return nil }
        guard !publication.isJoinEvent else { return publication }
        publications -= 1
        bytes -= publication.size
        if let request = publication.request, owned[request] != nil {
            owned[request]?.unwritten -= 1
            if owned[request]?.unwritten == 0, owned[request]?.queued == 0 { owned[request] = nil }
        }
        return publication
    }

    // MARK: - Periods

    /// Begins a period: first the subscriptions, then the join events, then what was deferred.
    mutating func begin(subscriptions: [SubscriptionRequest], joinEvents: [Publication]) {
        queue.prepend(contentsOf: joinEvents.map { .publish($0) })
        if !subscriptions.isEmpty { queue.prepend(.subscribe(subscriptions)) }
    }

    /// Ends a period. Publications that were not written go out first in the next period, except those whose request has
    /// ended and those that ``maximumAttempts`` lost connections have interrupted.
    ///
    /// - Returns: the publications that are given up, except join events.
    mutating func end() -> [Publication] {
        // What the binding took last may have been written in part; it took the others with it.
        let interrupted = unwritten.map { $0.attempted() }
        let waiting = queue.compactMap { operation -> Publication? in
            if case .publish(let publication) = operation { publication } else { nil }
        }
        let left = (interrupted + waiting).filter { publication in
            !publication.isJoinEvent && (publication.request.map { owned[$0] != nil } ?? true)
        }
        let former = owned
        self = Outbox(limits: limits)
        for publication in left where publication.attempts < Self.maximumAttempts { append(publication, at: .now) }
        for request in owned.keys { owned[request]?.isTaken = former[request]?.isTaken ?? false }
        return left.filter { $0.attempts >= Self.maximumAttempts }
    }

    /// Queues the last operations of the session behind all others.
    mutating func queueLast(farewell: Publication?) {
        if let farewell { append(farewell, at: .now) }
        queue.append(.disconnect)
    }

    /// Forgets everything but the disconnect.
    mutating func replaceByDisconnect() {
        self = Outbox(limits: limits)
        queue.append(.disconnect)
    }
}
