package import Access
package import Base
import Coaty
import Network
package import ProblemDetails
import Synchronization

/// Whoever opened a subscription or request, and ends with it.
package protocol SubscriptionOwner: AnyObject, Sendable {
    /// Called when the subscription or request has ended. Can be called several times.
    func end()
}

/// One subscription or request of a client: its options, and the outbound queue for its events or responses.
package final class ClientSubscription: Sendable {
    /// A number that is unique on the connection.
    let serial: UInt64
    /// The id that the client chose; nil on a connection with a single subscription or request.
    package let id: String?
    let options: SubscriptionOptions
    /// The observation; nil for a request.
    package let wanted: Observation?
    /// The kind of objects to deliver if the feed covers all kinds; nil for all.
    let kind: ObjectKind?
    /// Nil in tests of the queue.
    let outcome: ActivityOutcome?
    private let outbound: OutboundQueue
    private let owner = Mutex<(any SubscriptionOwner)?>(nil)
    /// The part of the events that the client may see; nil for all of them.
    private let view: Mutex<AccessView?>
    /// Whether there is a view. Read for each event without a lock.
    private let isJudged: Atomic<Bool>
    private let holdings = Mutex<[any AnyObject & Sendable]>([])
    private let places = Mutex<[any AnyObject & Sendable]>([])
    private let payer = Mutex<WorkRate?>(nil)
    private let isRemoved = Atomic(false)
    private let start = Atomic<UInt64>(0)

    init(
        serial: UInt64,
        id: String?,
        options: SubscriptionOptions,
        wanted: Observation?,
        view: AccessView?,
        outcome: ActivityOutcome?,
        outbound: OutboundQueue
    ) {
        self.view = Mutex(view)
        isJudged = Atomic(view != nil)
        self.serial = serial
        self.id = id
        self.options = options
        self.wanted = wanted
        kind = wanted?.objectKind
        self.outcome = outcome
        self.outbound = outbound
    }

    /// Keeps the owner until the slot is closed.
    package func attach(_ owner: some SubscriptionOwner) { self.owner.withLock { $0 = owner } }

    /// Tells the owner that the slot was closed. Called without locks.
    package func release() { owner.withLock { $0.take() }?.end() }

    /// Queues an item for the client.
    ///
    /// - Parameter view: the view for which the item was selected. If the view has changed since, a gap is queued
    ///   instead.
    func take(_ item: QueuedItem, seenBy view: AccessView?) { outbound.append(item, to: self, seenBy: view) }

    /// Charges work for the subscription to a client. Call it before the subscription is added to a feed.
    package func charge(_ client: WorkRate) {
        payer.withLock { $0 = client }
        outbound.ticket.charge(to: client)
    }

    /// The client that is charged for the subscription; nil if none is.
    var work: WorkRate? { payer.withLock(\.self) }

    /// The memory of the client.
    var memory: MemoryAccount { outbound.state.withLock(\.account.memory) }

    /// Charges memory to the client until the charge is released.
    ///
    /// - Throws: `Problem` with status 429 if the client's memory limit is reached, or 503 if no memory is left.
    func charged(_ bytes: Int) throws(Problem) -> Charge { try outbound.account.charge(bytes) }

    /// Discards the rest of the snapshot, because the client has no memory left for it, and reports a gap.
    func discardSnapshot() { outbound.discardSnapshot(of: self) }

    /// Keeps the client's reserved places until the subscription or request ends, so that the client can use them again as
    /// soon as it gets the end, although a turn of the feed may still have the subscription.
    package func occupy(_ places: [any AnyObject & Sendable]) {
        self.places.withLock { $0 += places }
        if hasLeft { leave() }
    }

    /// Keeps holdings, such as the charge for the subscription's memory, until the subscription is released.
    package func hold(_ holdings: [any AnyObject & Sendable]) { self.holdings.withLock { $0 += holdings } }

    /// Starts delivery. Called when the feed has added the subscription: from then on, the feed passes every record to
    /// it.
    func begin(_ start: SubscriptionStart) { outbound.begin(self, start) }

    /// Ends the subscription after its queued events.
    func end(_ reason: ServerFrame.EndReason) { outbound.end(self, reason) }

    /// Ends the subscription immediately with an `error` frame, and discards its queued events.
    package func refuse(_ problem: Problem) { outbound.refuse(self, problem) }

    /// Returns the item to queue for a record of a snapshot or replay; nil if the client does not want it. The work is
    /// charged to the client.
    func item(_ record: EventRecord) -> QueuedItem? {
        if let receivers = record.receivers, !receivers.includes(self) { return nil }
        var steps = WorkRate.steps(toPass: record.size)
        defer { work?.spend(steps) }
        switch record.content {
        case .gap, .invalid: return QueuedItem(gap: record, isEntire: currentView == nil)
        case .nothing: return nil
        case .event(let event):
            var reading = EventReading(record, event)
            defer { steps += reading.takeSteps() + reading.takeSharedSteps() }
            let verdict = reading.verdict(options.filter, kind)
            return reading.isNothing(verdict) ? nil : reading.item(verdict, options, currentView)
        }
    }

    /// The position of the feed behind which the subscription begins. Set before the first record is passed to it.
    var arrival: UInt64 { start.load(ordering: .relaxed) }

    /// Sets the position behind which the subscription begins.
    func begin(behind position: UInt64) { start.store(position, ordering: .relaxed) }

    /// Whether the feed has removed the subscription.
    var hasLeft: Bool { isRemoved.load(ordering: .acquiring) }

    /// Frees the client's places, and records that the subscription leaves the feed. A turn that has not yet added it will
    /// not do so.
    func leave() {
        isRemoved.store(true, ordering: .releasing)
        // Outside the lock, because a place may take a lock when it is released; that lock is a leaf.
        let released = places.withLock { places in
            defer { places = [] }
            return places
        }
        withExtendedLifetime(released) {}
    }

    /// Whether the client receives all events of the feed.
    var wantsAll: Bool { options.filter == nil && kind == nil && currentView == nil }

    /// Whether the client receives all objects of its ``kind``, and with all properties.
    var wantsWholeObjects: Bool { options.filter == nil && options.fields == nil && currentView == nil }

    // MARK: - Access

    /// The part of the events that the client may see; nil for all of them.
    var currentView: AccessView? { isJudged.load(ordering: .acquiring) ? view.withLock(\.self) : nil }

    /// Changes the view, and discards the queued events, which the old view allowed.
    package func see(_ view: AccessView?) { outbound.change(view, of: self) }

    /// Changes the view. Events that are already queued are not checked again.
    func change(_ view: AccessView?) {
        self.view.withLock { $0 = view }
        isJudged.store(view != nil, ordering: .releasing)
    }
}
