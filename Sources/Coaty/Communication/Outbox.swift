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
    }

    private let limits: OutboxLimits
    private let state = Mutex(State())

    init(limits: OutboxLimits) {
        self.limits = limits
    }

    /// Queues publications, all or none.
    ///
    /// - Returns: whether they go out now, and whether the binding has to be woken.
    func publish(_ publications: Publication...) throws(CommunicationError) -> (delivery: Delivery, wake: Bool) {
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
            return (state.isOpen ? .sent : .deferred, state.isOpen && wasEmpty)
        }
    }

    /// Queues a change of subscriptions; nothing while offline, where the next connect subscribes to all there are.
    ///
    /// - Returns: whether the binding has to be woken.
    func change(_ operation: LinkOperation) -> Bool {
        state.withLock { state in
            guard state.isOpen else { return false }
            let wasEmpty = state.queue.isEmpty
            state.queue.append(operation)
            return wasEmpty
        }
    }

    /// Takes the next operation.
    func next() -> LinkOperation? {
        state.withLock { state in
            guard state.isOpen, let operation = state.queue.popFirst() else { return nil }
            if case .publish(let publication) = operation { state.unsent.append(publication) }
            return operation
        }
    }

    /// Counts the oldest unsent publication as sent.
    func publicationSent() {
        state.withLock { state in
            guard let publication = state.unsent.popFirst() else { return }
            state.publications -= 1
            state.bytes -= publication.size
        }
    }

    /// Starts a session: first the subscriptions, then the join events, then what was deferred.
    func open(subscriptions: [String], joinEvents: [Publication]) {
        state.withLock { state in
            state.queue.prepend(
                contentsOf: [.subscribe(subscriptions)] + joinEvents.map { LinkOperation.publish($0) }
            )
            state.publications += joinEvents.count
            state.bytes += joinEvents.reduce(0) { $0 + $1.size }
            state.isOpen = true
        }
    }

    /// Ends a session. What was written in part can't have arrived, so it goes out first after the next connect.
    func close() {
        state.withLock { state in
            state.isOpen = false
            let waiting = state.queue.compactMap { operation -> Publication? in
                if case .publish(let publication) = operation { publication } else { nil }
            }
            let kept = (Array(state.unsent) + waiting).filter(\.isDeferrable)
            state.unsent.removeAll()
            state.queue = Deque(kept.map { LinkOperation.publish($0) })
            state.publications = kept.count
            state.bytes = kept.reduce(0) { $0 + $1.size }
        }
    }

    /// Queues the last operations of the agent behind all others.
    ///
    /// - Returns: whether the binding has to be woken.
    func leave(farewell: Publication) -> Bool {
        state.withLock { state in
            guard state.isOpen else { return false }
            state.publications += 1
            state.bytes += farewell.size
            state.queue.append(.publish(farewell))
            state.queue.append(.disconnect)
            return true
        }
    }

    /// Forgets everything.
    func discard() {
        state.withLock { $0 = State() }
    }

    /// The publications that wait, and their bytes.
    var waiting: (publications: Int, bytes: Int) {
        state.withLock { ($0.publications, $0.bytes) }
    }
}
