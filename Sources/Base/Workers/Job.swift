import Synchronization

/// Work that a ``WorkerPool`` performs in turns. A job runs on one thread at a time.
package protocol Job: AnyObject, Sendable {
    /// The job's place in its pool. A job belongs to one pool.
    var ticket: JobTicket { get }

    /// Performs about ``TurnLimit/duration`` of work.
    func turn() -> TurnEnd
}

/// The result of a turn.
package enum TurnEnd: Sendable {
    /// The job has no work until it is scheduled again.
    case idle
    /// The job has more work.
    case again
}

/// The maximum time of one turn.
package struct TurnLimit {
    static let duration = Duration.milliseconds(1)

    private let end = ContinuousClock.now + duration

    package init() {}

    /// Whether the turn must end.
    package var isOver: Bool { .now >= end }
}

/// The state of a job in its pool.
///
/// Every transition is an atomic read-modify-write. Therefore a turn sees all changes that were made before a call of
/// ``WorkerPool/schedule(_:)`` that found the job queued already.
package final class JobTicket: Sendable {
    private static let isScheduled: UInt8 = 1
    private static let isRunning: UInt8 = 2

    private let state = Atomic<UInt8>(0)
    private let isUrgent: Bool
    private let payer: Mutex<WorkRate?>

    /// - Parameters:
    ///   - isUrgent: whether other clients wait for the job.
    ///   - client: the client for which the job works; nil if it works for several, or if that is not yet known.
    package init(isUrgent: Bool = true, client: WorkRate? = nil) {
        self.isUrgent = isUrgent
        payer = Mutex(client)
    }

    /// Sets the client for which the job works from now on. It gets no turns while that client is overdrawn.
    package func charge(to client: WorkRate) { payer.withLock { $0 = client } }

    /// The client for which the job works; nil if it works for several.
    package var client: WorkRate? { payer.withLock(\.self) }

    /// Records that the job has work.
    ///
    /// - Returns: whether it must be queued: it is neither queued nor running.
    func schedule() -> Bool { state.bitwiseOr(Self.isScheduled, ordering: .acquiringAndReleasing).oldValue == 0 }

    /// Records that a thread begins a turn.
    func begin() { _ = state.exchange(Self.isRunning, ordering: .acquiringAndReleasing) }

    /// Records that the turn is over.
    ///
    /// - Returns: whether the job must be queued again.
    func end(_ end: TurnEnd) -> Bool {
        guard end == .idle else {
            _ = state.exchange(Self.isScheduled, ordering: .acquiringAndReleasing)
            return true
        }
        return state.bitwiseAnd(~Self.isRunning, ordering: .acquiringAndReleasing).newValue != 0
    }

    /// Whether the job has low priority: it is not urgent, or its client is overdrawn.
    var mayWait: Bool { !isUrgent || client?.isOverdrawn ?? false }
}
