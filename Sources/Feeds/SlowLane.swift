import Access
import Base
import Coaty
import Network
import Synchronization

/// The subscriptions of one client to a feed that are held back: their filters are expensive, or the client is
/// overdrawn. They receive the feed's records after the other subscriptions, in separate turns, so that they delay only
/// each other. The client is charged for its queued records.
///
/// The feed's turns append to its intake. Its locks are used like those of ``Feed``.
final class SlowLane: Job {
    /// Number of consecutive records that were not expensive, after which the subscriptions return.
    static let recovery = 100

    private struct Turns {
        var audience = Audience()
        /// Whether the record that is being delivered, or was delivered last, was not counted yet.
        var isNew = false
        /// The number of records since the last expensive one, or since a subscription was added.
        var cheap = 0

        var hasRecovered: Bool { (cheap >= SlowLane.recovery || audience.isEmpty) && !audience.isDelivering }
    }

    let ticket: JobTicket
    private let workers: WorkerPool
    private let counts: FeedCounts
    private let memory: BacklogMemory
    private let onRecovery: @Sendable () -> Void
    private let intake = Mutex(FeedIntake())
    private let turns = Mutex(Turns())
    private let isRecovered = Atomic(false)

    /// Creates the slow lane of a subscription's client.
    ///
    /// - Parameter onRecovery: called when the subscriptions need not be held back any longer, or all have left.
    init(
        of subscription: ClientSubscription,
        workers: WorkerPool,
        counts: FeedCounts,
        onRecovery: @escaping @Sendable () -> Void
    ) {
        self.onRecovery = onRecovery
        ticket = JobTicket(isUrgent: false, client: subscription.work)
        memory = counts.backlogMemory(of: subscription.memory)
        self.workers = workers
        self.counts = counts
        counts.countSlowLane(1)
    }

    deinit { counts.countSlowLane(-1) }

    /// Adds a subscription that has begun.
    func add(_ departure: Audience.Departure) {
        append(.join(.init(subscription: departure.subscription, arrival: departure.position, snapshot: nil)))
    }

    /// Whether ``removeRecovered(behind:)`` can have a result.
    var hasRecovered: Bool { isRecovered.load(ordering: .relaxed) }

    /// Removes all subscriptions if they have received all records and need not be held back any longer. No record may
    /// be appended meanwhile.
    ///
    /// - Parameter position: the last record that was appended.
    /// - Returns: nil if they stay; empty if all have left.
    func removeRecovered(behind position: UInt64) -> [Audience.Departure]? {
        // If a turn is running, there is work, so the subscriptions stay.
        let removed = turns.withLockIfAvailable { turns -> [Audience.Departure]? in
            guard turns.hasRecovered, intake.withLock(\.isEmpty),
                turns.audience.isEmpty || ticket.client?.isOverdrawn != true
            else { return nil }
            return turns.audience.removeMembers(behind: position)
        }
        return removed ?? nil
    }

    func remove(_ subscription: ClientSubscription) {
        intake.withLock { $0.leaves.append(subscription) }
        workers.schedule(self)
    }

    /// Delivers a record.
    func append(_ record: EventRecord, at position: UInt64) {
        let isTrimmed = intake.withLock { intake in
            intake.append(.record(record, position: position))
            return intake.trim(memory)
        }
        if isTrimmed { counts.noteSlowLaneOverflow() }
        workers.schedule(self)
    }

    /// Ends or refuses all subscriptions.
    func append(_ entry: FeedIntake.Entry) {
        intake.withLock { $0.append(entry) }
        workers.schedule(self)
    }

    func turn() -> TurnEnd {
        let limit = TurnLimit()
        let (end, hasRecovered, isEmpty) = turns.withLock { turns in
            (turn(&turns, limit), turns.hasRecovered, turns.audience.isEmpty)
        }
        // Reported only once: the feed checks at each further event. An empty slow lane gets no events before it is
        // removed.
        let isNews = isRecovered.exchange(hasRecovered, ordering: .relaxed) != hasRecovered
        if hasRecovered, isNews || isEmpty { onRecovery() }
        return end
    }

    private func turn(_ turns: inout Turns, _ limit: TurnLimit) -> TurnEnd {
        while true {
            // The time that its entries are queued is not measured, because it would hide the queueing time of the
            // feed's events.
            let (leaves, entry, _) = intake.withLock { $0.next(withEntry: !turns.audience.isDelivering) }
            for subscription in leaves { turns.audience.remove(subscription) }
            if let entry {
                apply(entry, &turns)
            } else if !turns.audience.isDelivering {
                return .idle
            }
            for subscription in turns.audience.deliver(until: limit) {
                subscription.refuse(Problems.filterTooExpensive)
                turns.audience.remove(subscription)
            }
            if turns.isNew, !turns.audience.isDelivering {
                turns.isNew = false
                turns.cheap = turns.audience.wasExpensive ? 0 : turns.cheap + 1
            }
            if limit.isOver { return .again }
        }
    }

    private func apply(_ entry: FeedIntake.Entry, _ turns: inout Turns) {
        switch entry {
        case .record(let record, let position):
            turns.audience.begin(record, at: position)
            turns.isNew = true
        case .join(let join):
            turns.cheap = 0
            if !join.subscription.hasLeft { turns.audience.insert(join.subscription, behind: join.arrival) }
        case .status:
            // Only a refusal is passed on.
            for subscription in turns.audience.subscriptions { subscription.refuse(Problems.subscriptionRefused) }
            turns.audience.removeAll()
        case .end:
            for subscription in turns.audience.subscriptions { subscription.end(.withdrawn) }
            turns.audience.removeAll()
        }
    }
}
