import DequeModule
import Synchronization

/// What is to be done on the link, in order: the one bounded queue between everybody who publishes and the binding.
///
/// What was deferred and what was handed over and is not yet sent count against the same limits. What is queued is kept; a
/// new publication is refused when the queue is full. Subscriptions don't count: they are as many as are observed.
final class Outbox: Sendable {
    private struct State {
        var queue = Deque<LinkOperation>()
        /// Publications that the binding took and did not yet report as sent.
        var unsent = Deque<Publication>()
        var publications = 0
        var bytes = 0
        var isOpen = false
        /// Whether the last operations are queued, so that nothing behind them goes out.
        var isLeaving = false
        /// The subscriptions that are queued and may be undone: topic filters with the tickets of their packets.
        var undoable: [TopicLevel: UInt64] = [:]
        /// The packets that are queued but undone, which don't go out.
        var undone: Set<UInt64> = []
        var counts = Counts()

        /// Takes what was undone out of the queue. Done seldom, since it looks at all that waits.
        mutating func compact() {
            queue.removeAll { [undone] operation in
                if case .subscribe(_, let ticket) = operation { undone.contains(ticket) } else { false }
            }
            undone = []
        }
    }

    /// What stays from session to session.
    private struct Counts {
        /// Publications that were written.
        var published = 0
        /// Publications that were taken to go out after the next connect.
        var deferred = 0
        /// The sessions that have begun.
        var sessions = 0
        /// When the last session began or ended; at first when the outbox was made.
        var since = CoatyTimestamp.nowMillis()
    }

    /// What a session that has ended leaves.
    struct Remains {
        /// The publications that are given up.
        let publications: [Publication]
        /// The tickets of the subscriptions that did not go out.
        let tickets: Set<UInt64>
        /// Whether the agent was leaving.
        let wasLeaving: Bool
    }

    /// How many operations may be undone and still be queued; more only where they are less than half of the queue.
    static let maximumUndone = 64

    let limits: OutboxLimits
    private let state = Mutex(State())

    init(limits: OutboxLimits) {
        self.limits = limits
    }

    /// How often a publication may be the one that is being written when the link is lost: a broker may refuse it by
    /// cutting the link, each time.
    static let maximumAttempts = 5

    /// Queues publications, all or none.
    ///
    /// - Returns: whether they go out now, and whether the binding has to be woken.
    func publish(_ publications: [Publication]) throws(CommunicationError) -> (delivery: Delivery, wake: Bool) {
        let limits = limits
        return try state.withLock { state throws(CommunicationError) in
            let bytes = publications.reduce(0) { $0 + $1.size }
            guard state.publications + publications.count <= limits.publications, state.bytes + bytes <= limits.bytes
            else {
                throw .queueFull(publications: state.publications, bytes: state.bytes)
            }
            guard state.isOpen || publications.allSatisfy(\.isDeferrable) else { throw .offline }
            state.publications += publications.count
            state.bytes += bytes
            let wasEmpty = state.queue.isEmpty
            for publication in publications { state.queue.append(.publish(publication)) }
            let goesOut = state.isOpen && !state.isLeaving
            if !goesOut { state.counts.deferred += publications.count }
            return (goesOut ? .sent : .deferred, goesOut && wasEmpty)
        }
    }

    /// Queues a subscription; nothing while offline, where the next connect subscribes to all there are.
    ///
    /// - Parameter mayBeUndone: whether it need not go out where it is undone before.
    /// - Returns: whether the binding has to be woken.
    func subscribe(_ topicFilter: String, ticket: UInt64, mayBeUndone: Bool = true) -> Bool {
        state.withLock { state in
            guard state.isOpen else { return false }
            if mayBeUndone { state.undoable[TopicLevel(topicFilter)] = ticket }
            let wasEmpty = state.queue.isEmpty
            state.queue.append(.subscribe([topicFilter], ticket: ticket))
            return wasEmpty
        }
    }

    /// Queues the end of a subscription; nothing while offline.
    ///
    /// - Returns: whether the binding has to be woken.
    func unsubscribe(_ topicFilter: String) -> Bool {
        state.withLock { state in
            guard state.isOpen else { return false }
            // A subscription that is still queued and is undone now need not go out at all: so a topic filter is queued twice
            // at most, and the queue can't grow while the socket takes nothing. The contrary goes out, as who subscribes
            // again waits for the broker to acknowledge that.
            if let ticket = state.undoable.removeValue(forKey: TopicLevel(topicFilter)) {
                state.undone.insert(ticket)
                if state.undone.count > max(Self.maximumUndone, state.queue.count / 2) { state.compact() }
                return false
            }
            let wasEmpty = state.queue.isEmpty
            state.queue.append(.unsubscribe(topicFilter))
            return wasEmpty
        }
    }

    /// Takes the next operation.
    func next() -> LinkOperation? {
        state.withLock { state in
            guard state.isOpen else { return nil }
            while let operation = state.queue.popFirst() {
                switch operation {
                case .publish(let publication): state.unsent.append(publication)
                case .subscribe(_, let ticket) where state.undone.remove(ticket) != nil: continue
                case .subscribe(let filters, let ticket):
                    // One that may be undone has a packet of its own.
                    let filter = filters.first.map(TopicLevel.init)
                    if let filter, state.undoable[filter] == ticket { state.undoable[filter] = nil }
                case .unsubscribe, .disconnect: break
                }
                return operation
            }
            return nil
        }
    }

    /// Counts the oldest unsent publication as done with.
    ///
    /// - Parameter isWritten: whether it was written.
    func publicationDone(isWritten: Bool) {
        state.withLock { state in
            guard let publication = state.unsent.popFirst() else { return }
            state.publications -= 1
            state.bytes -= publication.size
            state.counts.published += isWritten ? 1 : 0
        }
    }

    /// Starts a session: first the subscriptions, then the join events, then what was deferred.
    func open(subscriptions: [String], ticket: UInt64, joinEvents: [Publication]) {
        state.withLock { state in
            state.counts.sessions += 1
            state.counts.since = .nowMillis()
            guard !state.isLeaving else {
                // Nobody has seen the agent in this session, so there is nothing to take back.
                state.queue = [.disconnect]
                state.isOpen = true
                return
            }
            state.queue.prepend(
                contentsOf: [.subscribe(subscriptions, ticket: ticket)] + joinEvents.map { LinkOperation.publish($0) }
            )
            state.publications += joinEvents.count
            state.bytes += joinEvents.reduce(0) { $0 + $1.size }
            state.isOpen = true
        }
    }

    /// Ends a session. What was written in part can't have arrived, so it goes out first after the next connect, unless it
    /// has ended a session before.
    func close() -> Remains {
        state.withLock { state in
            var tickets: Set<UInt64> = []
            let interrupted = state.unsent.map { $0.attempted() }
            let waiting = state.queue.compactMap { operation -> Publication? in
                if case .subscribe(_, let ticket) = operation { tickets.insert(ticket) }
                return if case .publish(let publication) = operation { publication } else { nil }
            }
            let all = interrupted + waiting
            if state.isOpen { state.counts.since = .nowMillis() }
            let kept = all.filter { $0.isDeferrable && $0.attempts < Self.maximumAttempts }
            state = State(
                queue: Deque(kept.map { LinkOperation.publish($0) }),
                publications: kept.count,
                bytes: kept.reduce(0) { $0 + $1.size },
                isLeaving: state.isLeaving,
                counts: state.counts
            )
            return Remains(
                publications: all.filter { !$0.isDeferrable || $0.attempts >= Self.maximumAttempts },
                tickets: tickets,
                wasLeaving: state.isLeaving
            )
        }
    }

    /// Queues the last operations of the agent behind all others.
    ///
    /// - Parameter farewell: nil for who has only observed.
    /// - Returns: whether the binding has to be woken.
    func leave(farewell: Publication?) -> Bool {
        state.withLock { state in
            state.isLeaving = true
            guard state.isOpen else { return false }
            if let farewell {
                state.publications += 1
                state.bytes += farewell.size
                state.queue.append(.publish(farewell))
            }
            state.queue.append(.disconnect)
            return true
        }
    }

    /// Forgets everything.
    func discard() {
        state.withLock { state in
            if state.isOpen { state.counts.since = .nowMillis() }
            state = State(counts: state.counts)
        }
    }

    /// The publications that wait, their bytes, and all operations that are queued, changes of subscriptions among them.
    var waiting: (publications: Int, bytes: Int, operations: Int) {
        state.withLock { ($0.publications, $0.bytes, $0.queue.count - $0.undone.count) }
    }

    /// How the link stands, what has gone out, and what waits.
    ///
    /// - Parameters:
    ///   - received: the messages that came in.
    ///   - invalid: those of them that were dropped.
    func statistics(received: Int, invalid: Int) -> CommunicationStatistics {
        state.withLock { state in
            CommunicationStatistics(
                state: state.isOpen ? .online : .offline,
                since: state.counts.since,
                reconnects: max(0, state.counts.sessions - 1),
                received: received,
                invalid: invalid,
                published: state.counts.published,
                deferred: state.counts.deferred,
                waiting: state.publications,
                waitingBytes: state.bytes
            )
        }
    }
}
