import DequeModule

/// The bounded queue of operations between all publishers and the binding, in order.
///
/// Deferred publications and those that were handed over and are not yet written count against the same limits. Queued
/// publications are kept; a new publication is refused if the queue is full. Subscriptions and join events don't count:
/// their number depends on the observers and the shared objects.
struct Outbox: Sendable {
    /// The operations of one request in the outbox.
    private struct Owned {
        let client: ObjectIdentifier?
        var queued = 0
        var queuedBytes = 0
        var unwritten = 0
        /// Whether the binding has taken any of them.
        var isTaken = false
    }

    /// Maximum number of withdrawn or undone operations that stay in the queue; half of the queue if that is more.
    static let maximumDead = 64

    let limits: OutboxLimits
    /// Number of publications that are queued or not yet written.
    private(set) var publications = 0
    /// Their size in bytes.
    private(set) var bytes = 0
    private var queue = Deque<SessionOperation>()
    /// Publications that the binding took and has not yet reported as written.
    private var unwritten = Deque<Publication>()
    /// The pending requests that have publications in the outbox.
    private var owned: [UInt64: Owned] = [:]
    /// The tickets of the queued subscriptions that can still be undone.
    private var undoable: [EventSelector: UInt64] = [:]
    /// The tickets of subscriptions that were undone while they were queued.
    private var undone: Set<UInt64> = []
    /// Number of withdrawn publications in the queue.
    private var withdrawn = 0
    /// Whether the binding took the disconnect operation. Nothing is sent after it.
    private var isClosed = false
    /// Number of publications that are queued or not yet written, by client; nil if they are not counted.
    private var clients: [ObjectIdentifier?: Int]?

    /// - Parameter countsClients: whether ``holds(publicationsOf:)`` is used.
    init(limits: OutboxLimits, countsClients: Bool = false) {
        self.limits = limits
        clients = countsClients ? [:] : nil
    }

    /// Number of queued operations, including changes of subscriptions.
    var operations: Int { queue.count - undone.count - withdrawn }

    /// When the oldest publication was queued that is not yet written; nil if there is none. Join events don't count.
    /// Searches all operations before it.
    var oldestQueued: ContinuousClock.Instant? {
        if let oldest = unwritten.first(where: { !$0.isJoinEvent }) { return oldest.queuedSince }
        for case .publish(let publication) in queue where !publication.isJoinEvent {
            guard publication.request.map({ owned[$0] != nil }) ?? true else { continue }
            return publication.queuedSince
        }
        return nil
    }

    /// The publication that may be partly written.
    var beingWritten: Publication? { unwritten.first }

    /// The first queued publication; nil if another operation is first.
    var nextPublication: Publication? {
        for operation in queue {
            guard case .publish(let publication) = operation else { return nil }
            if publication.request.map({ owned[$0] != nil }) ?? true { return publication }
        }
        return nil
    }

    /// The objects that are advertised by publications which are not yet written.
    var advertised: Set<CoatyUUID> {
        var ids = Set(unwritten.compactMap(\.sharedObjectId))
        for case .publish(let publication) in queue { if let id = publication.sharedObjectId { ids.insert(id) } }
        return ids
    }

    /// Returns whether publications of a client are not yet written.
    ///
    /// - Parameter client: nil for the agent itself.
    func holds(publicationsOf client: (any PublicationClient)?) -> Bool {
        clients?[client.map(ObjectIdentifier.init)] != nil
    }

    /// Whether all operations were handed over and all publications are written.
    var isDrained: Bool { operations == 0 && unwritten.isEmpty }

    /// The objects that publications deadvertise which are not yet written, in order.
    var deadvertised: [CoatyUUID] {
        let queued = queue.lazy.compactMap { operation -> Publication? in
            if case .publish(let publication) = operation { publication } else { nil }
        }
        return (Array(unwritten) + queued).flatMap { publication in
            if case .ends(let ids) = publication.sharing { ids } else { [CoatyUUID]() }
        }
    }

    // MARK: - Queueing

    /// Queues publications, all or none.
    ///
    /// - Returns: whether the queue was empty; then the binding may be asleep.
    mutating func publish(_ new: [Publication]) throws(CommunicationError) -> Bool {
        let size = new.reduce(0) { $0 + $1.size }
        guard publications + new.count <= limits.publications, bytes + size <= limits.bytes else {
            throw .queueFull(publications: publications, bytes: bytes)
        }
        let wasEmpty = queue.isEmpty
        // The clock is read once, because an event may be sent as two publications.
        let now = ContinuousClock.now
        for publication in new { append(publication, at: now) }
        return wasEmpty
    }

    private mutating func append(_ publication: Publication, at now: ContinuousClock.Instant) {
        var publication = publication
        if publication.queuedSince == nil { publication.queuedSince = now }
        publications += 1
        bytes += publication.size
        let client = publication.client.map(ObjectIdentifier.init)
        if let request = publication.request {
            owned[request, default: Owned(client: client)].queued += 1
            owned[request]?.queuedBytes += publication.size
            if publication.isPartOfTaken { owned[request]?.isTaken = true }
        }
        clients?[client, default: 0] += 1
        queue.append(.publish(publication))
    }

    private mutating func removed(_ count: Int, of client: ObjectIdentifier?) {
        guard let left = clients?[client] else { return }
        clients?[client] = left > count ? left - count : nil
    }

    /// Queues publications of another outbox. They don't count against the limits until then.
    ///
    /// - Parameter isFirst: whether to queue them before all others.
    mutating func adopt(_ publications: [Publication], isFirst: Bool = false) {
        let others = queue
        if isFirst { queue = [] }
        for publication in publications { append(publication, at: .now) }
        if isFirst { queue += others }
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

    /// Queues subscriptions that are not undone.
    mutating func subscribe(ahead requests: [SubscriptionRequest]) {
        queue.append(.subscribe(requests))
    }

    /// Queues the end of a subscription.
    ///
    /// A subscription that is still queued and is undone now is not sent at all. Therefore a selector is queued at most
    /// twice, and the queue can't grow while the socket accepts nothing. The end of a subscription is sent even if a
    /// new one follows, because the new observer waits for the broker's answer.
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

    /// Returns whether a request is queued and no part of it was handed over.
    func isUnsent(request: UInt64) -> Bool { owned[request].map { !$0.isTaken } ?? false }

    /// Withdraws the remaining publications of a request that has ended.
    mutating func withdraw(request: UInt64) {
        guard let left = owned.removeValue(forKey: request) else { return }
        publications -= left.queued
        bytes -= left.queuedBytes
        withdrawn += left.queued
        removed(left.queued, of: left.client)
        compactIfNeeded()
    }

    /// Removes withdrawn and undone operations from the queue. Runs rarely, because it visits all queued operations.
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

    /// Removes the other queued publications of an event that advertises an object under several names.
    mutating func removeAdvertisements(besides publication: Publication) {
        guard let id = publication.sharedObjectId else { return }
        for index in queue.indices.reversed() {
            guard case .publish(let other) = queue[index], other.sharedObjectId == id, !other.isJoinEvent,
                other.queuedSince == publication.queuedSince
            else { continue }
            queue.remove(at: index)
            publications -= 1
            bytes -= other.size
            removed(1, of: other.client.map(ObjectIdentifier.init))
        }
    }

    /// Moves the publications of a client behind those of all others, with those that must follow them: about the same
    /// objects, and later ones of the same clients.
    mutating func moveToEnd(publicationsOf client: (any PublicationClient)?) {
        var clients: Set<ObjectIdentifier?> = [client.map(ObjectIdentifier.init)]
        var objects: Set<CoatyUUID> = []
        var moved: [SessionOperation] = []
        queue.removeAll { operation in
            guard case .publish(let publication) = operation else { return false }
            let client = publication.client.map(ObjectIdentifier.init)
            let ids = publication.sharing?.objectIds ?? []
            guard clients.contains(client) || !objects.isDisjoint(with: ids) else { return false }
            clients.insert(client)
            objects.formUnion(ids)
            moved.append(operation)
            return true
        }
        queue += moved
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
                // A subscription that may be undone is queued separately.
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

    /// Removes the oldest unwritten publication.
    mutating func publicationDone() -> Publication? {
        guard let publication = unwritten.popFirst() else { return nil }
        guard !publication.isJoinEvent else { return publication }
        publications -= 1
        bytes -= publication.size
        removed(1, of: publication.client.map(ObjectIdentifier.init))
        if let request = publication.request, owned[request] != nil {
            owned[request]?.unwritten -= 1
            if owned[request]?.unwritten == 0, owned[request]?.queued == 0 { owned[request] = nil }
        }
        return publication
    }

    // MARK: - Periods

    /// Begins a period: first the subscriptions, then the join events, then the deferred publications.
    mutating func begin(subscriptions: [SubscriptionRequest], joinEvents: [Publication]) {
        for index in queue.indices {
            guard case .publish(var publication) = queue[index] else { continue }
            publication.isDeferred = true
            queue[index] = .publish(publication)
        }
        queue.prepend(contentsOf: joinEvents.map { .publish($0) })
        if !subscriptions.isEmpty { queue.prepend(.subscribe(subscriptions)) }
    }

    /// Ends a period. Publications that were not written are sent first in the next period, except those whose request
    /// has ended.
    ///
    /// - Parameter isExtracted: whether to remove a publication; called for each in order. The second argument is whether
    ///   it may be partly written.
    /// - Returns: the removed publications.
    mutating func end(extracting isExtracted: (Publication, Bool) -> Bool = { _, _ in false }) -> [Publication] {
        let waiting = queue.compactMap { operation -> Publication? in
            if case .publish(let publication) = operation { publication } else { nil }
        }
        let former = self
        self = Outbox(limits: limits, countsClients: clients != nil)
        var extracted: [Publication] = []
        for (position, publication) in (Array(former.unwritten) + waiting).enumerated() where !publication.isJoinEvent {
            var publication = publication
            if let request = publication.request {
                guard let left = former.owned[request] else { continue }
                publication.isPartOfTaken = left.isTaken
            }
            // They are written in order, so only the first one may be partly written.
            let isPartly = position == 0 && !former.unwritten.isEmpty
            if isExtracted(publication, isPartly) {
                extracted.append(publication)
            } else {
                if isPartly { publication.attempts += 1 }
                append(publication, at: .now)
            }
        }
        return extracted
    }

    /// Queues the last operations of the session after all others.
    mutating func queueLast(farewell: Publication?) {
        if let farewell { append(farewell, at: .now) }
        queue.append(.disconnect)
    }

    /// Discards all operations but the disconnect.
    mutating func replaceByDisconnect() {
        self = Outbox(limits: limits, countsClients: clients != nil)
        queue.append(.disconnect)
    }
}
