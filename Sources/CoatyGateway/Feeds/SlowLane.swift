import Coaty
import HTTPServer
import Synchronization

/// The subscriptions of one client to a feed that wait for others: their filters are expensive, or the client is overdrawn. They receive
/// the feed's records behind the others, in turns of their own, so that they delay only each other. The client pays for the records
/// that wait.
///
/// The feed's turns append to its intake. Its locks are used as those of ``Feed``.
final class SlowLane: Job {
    /// Number of records in a row that were not expensive, after which the subscriptions return.
    static let recovery = 100

    private struct Turns {
        var audience = Audience()
        /// Whether the record that is being delivered, or was delivered last, was not counted yet.
        var isNew = false
        /// The number of records since the last expensive one.
        var cheap = 0
    }

    let ticket: JobTicket
    private let workers: WorkerPool
    private let counts: FeedCounts
    private let memory: BacklogMemory
    private let intake = Mutex(FeedIntake())
    private let turns = Mutex(Turns())

    /// Creates the lane of a subscription's client.
    init(of subscription: ClientSubscription, workers: WorkerPool, counts: FeedCounts) {
        ticket = JobTicket(isUrgent: false, client: subscription.work)
        memory = counts.backlogMemory(of: subscription.memory)
        self.workers = workers
        self.counts = counts
    }

    /// Adds a subscription that has begun.
    func add(_ departure: Audience.Departure) {
        append(.join(.init(subscription: departure.subscription, arrival: departure.position, snapshot: nil)))
    }

    /// Removes all subscriptions if they have received everything and need not wait any longer; nothing must be appended meanwhile.
    ///
    /// - Parameter position: the last record that was appended.
    /// - Returns: nil if they stay; empty if all have left.
    func removeRecovered(behind position: UInt64) -> [Audience.Departure]? {
        guard ticket.client?.isOverdrawn != true else { return nil }
        // A turn that is running has work.
        let removed = turns.withLockIfAvailable { turns -> [Audience.Departure]? in
            guard turns.cheap >= Self.recovery || turns.audience.isEmpty, !turns.audience.isDelivering,
                intake.withLock(\.isEmpty)
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
    ///
    /// - Parameter gap: returns the record of a gap in place of the records up to a position.
    func append(_ record: EventRecord, at position: UInt64, _ gap: (UInt64) -> EventRecord) {
        let isTrimmed = intake.withLock { intake in
            intake.append(.record(record, position: position))
            return intake.trim(memory, gap)
        }
        if isTrimmed { counts.noteBacklog() }
        workers.schedule(self)
    }

    /// Ends or refuses all subscriptions.
    func append(_ entry: FeedIntake.Entry) {
        intake.withLock { $0.append(entry) }
        workers.schedule(self)
    }

    func turn() -> TurnEnd {
        let limit = TurnLimit()
        return turns.withLock { turns in
            while true {
                let (leaves, entry, waitingSince) = intake.withLock {
                    $0.next(withEntry: !turns.audience.isDelivering)
                }
                for subscription in leaves { turns.audience.remove(subscription) }
                if let waitingSince { counts.noteWait(since: waitingSince) }
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
    }

    private func apply(_ entry: FeedIntake.Entry, _ turns: inout Turns) {
        switch entry {
        case .record(let record, let position):
            turns.audience.begin(record, at: position)
            turns.isNew = true
        case .join(let join):
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
