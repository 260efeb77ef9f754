import Synchronization

/// Work that a ``WorkerPool`` performs in turns. A job runs on one thread at a time.
protocol Job: AnyObject, Sendable {
    /// The job's place in its pool. A job belongs to one pool.
    var ticket: JobTicket { get }

    /// Performs about ``TurnLimit/duration`` of work.
    func turn() -> TurnEnd
}

/// What a job needs after a turn.
enum TurnEnd: Sendable {
    /// There is no work until the job is scheduled again.
    case idle
    /// There is more work.
    case again
    /// There is more work, and the turn used up its limit: the job waits behind the jobs that did not.
    case againLater
}

/// The time that one turn may take.
struct TurnLimit {
    static let duration = Duration.milliseconds(1)

    private let end = ContinuousClock.now + duration

    /// Whether the turn has to end.
    var isOver: Bool { .now >= end }
}

/// The state of a job in its pool.
///
/// Every transition is an atomic read-modify-write. So a turn sees everything that was done before a call of
/// ``WorkerPool/schedule(_:)`` that found the job queued already.
final class JobTicket: Sendable {
    private static let isScheduled: UInt8 = 1
    private static let isRunning: UInt8 = 2

    private let state = Atomic<UInt8>(0)
    private let wasExpensive = Atomic(false)
    private let isUrgent: Bool

    /// - Parameter isUrgent: whether live events depend on the job.
    init(isUrgent: Bool = true) { self.isUrgent = isUrgent }

    /// Notes that the job has work.
    ///
    /// - Returns: whether it has to be queued: it is neither queued nor running.
    func schedule() -> Bool { state.bitwiseOr(Self.isScheduled, ordering: .acquiringAndReleasing).oldValue == 0 }

    /// Notes that a thread begins a turn.
    func begin() { _ = state.exchange(Self.isRunning, ordering: .acquiringAndReleasing) }

    /// Notes that the turn is over.
    ///
    /// - Returns: whether the job has to be queued again.
    func end(_ end: TurnEnd) -> Bool {
        wasExpensive.store(end == .againLater, ordering: .relaxed)
        guard end == .idle else {
            _ = state.exchange(Self.isScheduled, ordering: .acquiringAndReleasing)
            return true
        }
        return state.bitwiseAnd(~Self.isRunning, ordering: .acquiringAndReleasing).newValue != 0
    }

    /// Whether the job waits behind others: it is not urgent, or its last turn used up its limit.
    var mayWait: Bool { !isUrgent || wasExpensive.load(ordering: .relaxed) }
}
