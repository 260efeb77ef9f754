import Coaty
import HTTPServer
import Synchronization

/// The subscriptions of a feed whose filters are expensive. They receive the feed's records behind the others, in turns of their
/// own, so that they delay only each other.
///
/// The feed's turns append to its intake. Its locks are used as those of ``Feed``.
final class SlowLane: Job {
    let ticket = JobTicket(isUrgent: false)
    private let workers: WorkerPool
    private let counts: FeedCounts
    private let intake = Mutex(FeedIntake())
    private let audience = Mutex(Audience())

    init(workers: WorkerPool, counts: FeedCounts) {
        self.workers = workers
        self.counts = counts
    }

    /// Adds a subscription that has begun.
    ///
    /// - Parameter position: the last record that it has received.
    func add(_ subscription: ClientSubscription, behind position: UInt64) {
        append(.join(.init(subscription: subscription, arrival: position, snapshot: nil)))
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
            return intake.trim(counts, gap)
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
        return audience.withLock { audience in
            while true {
                let (leaves, entry, waitingSince) = intake.withLock { $0.next(withEntry: !audience.isDelivering) }
                for subscription in leaves { audience.remove(subscription) }
                if let waitingSince { counts.noteWait(since: waitingSince) }
                if let entry {
                    apply(entry, &audience)
                } else if !audience.isDelivering {
                    return .idle
                }
                for subscription in audience.deliver(until: limit) {
                    subscription.refuse(Problems.filterTooExpensive)
                    audience.remove(subscription)
                }
                if limit.isOver { return .again }
            }
        }
    }

    private func apply(_ entry: FeedIntake.Entry, _ audience: inout Audience) {
        switch entry {
        case .record(let record, let position): audience.begin(record, at: position)
        case .join(let join):
            if !join.subscription.hasLeft { audience.insert(join.subscription, behind: join.arrival) }
        case .status:
            // Only a refusal is passed on.
            for subscription in audience.subscriptions { subscription.refuse(Problems.subscriptionRefused) }
            audience.removeAll()
        case .end:
            for subscription in audience.subscriptions { subscription.end(.withdrawn) }
            audience.removeAll()
        }
    }
}
