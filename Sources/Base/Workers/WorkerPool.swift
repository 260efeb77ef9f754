import Coaty
import Coordination
import DequeModule
import Dispatch
import Foundation
import Synchronization

/// A fixed number of threads that run jobs in turns.
///
/// There are two queues. Jobs that are not urgent, and jobs of overdrawn clients, are in the second queue, which gets
/// every fourth turn and is served round-robin by client: they delay each other, but hardly the other jobs. While a
/// client is overdrawn, its jobs there get no turns at all, even if a thread is free, because the processors are shared
/// with the threads that read and write. The lock is a leaf: no other lock is taken while it is held.
package final class WorkerPool: Component {
    /// The interval of turns that belong to the second queue.
    static let turnOfSecondQueue = 4
    /// Maximum time that ``stop()`` waits for running turns.
    static let stopTimeout = DispatchTimeInterval.seconds(1)

    private struct State {
        var first: Deque<any Job> = []
        var second = ClientTurns()
        /// Counts the turns, to choose the queue.
        var turns = 0
        var running = 0
        /// Number of threads that wait for ``WorkerPool/wake`` and that it was not signaled for.
        var waiting = 0
        var isStopping = false

        mutating func append(_ job: any Job) {
            if job.ticket.mayWait { second.append(job) } else { first.append(job) }
        }

        mutating func popFirst(at now: Int64, holding held: inout [WorkRate]) -> (any Job)? {
            turns += 1
            if turns % WorkerPool.turnOfSecondQueue == 0, let job = second.popFirst(at: now, holding: &held) {
                return job
            }
            return first.popFirst() ?? second.popFirst(at: now, holding: &held)
        }

        /// Returns how many of the waiting threads are needed for some new jobs, and records that they are woken.
        mutating func wake(for jobs: Int) -> Int {
            let count = min(jobs, waiting)
            waiting -= count
            return count
        }
    }

    /// The next action of a thread.
    private enum Step {
        case run(any Job)
        case wait
        case exit
    }

    private let name: String
    private let threads: Int
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let exited = DispatchGroup()

    package init(name: String, threads: Int) {
        self.name = name
        self.threads = threads
    }

    /// Schedules a turn of a job, from any thread. A job that is queued already is not queued again; one that is
    /// running gets another turn. Jobs that are scheduled before ``start()`` wait for it.
    package func schedule(_ job: any Job) {
        if job.ticket.schedule() { append(job) }
    }

    /// Whether no job is queued or running.
    var isIdle: Bool { state.withLock { $0.first.isEmpty && $0.second.isEmpty && $0.running == 0 } }

    package func start() {
        for _ in 0..<threads {
            exited.enter()
            let thread = Thread { [self] in
                run()
                exited.leave()
            }
            thread.name = name
            // The size of the main thread's stack: JSON may be nested deeply.
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    /// Ends the threads after their running turns, and discards the queued jobs. Waits for at most ``stopTimeout``.
    func stop() async {
        let (first, second) = state.withLock { state in
            defer { (state.first, state.second, state.isStopping) = ([], ClientTurns(), true) }
            return (state.first, state.second)
        }
        signal(threads)
        // Outside the lock: a job without other references is destroyed here.
        withExtendedLifetime((first, second)) {}
        await onBlockingThread { [exited] in _ = exited.wait(timeout: .now() + Self.stopTimeout) }
    }

    private func append(_ job: any Job) {
        let woken = state.withLock { state in
            guard !state.isStopping else { return 0 }
            state.append(job)
            return state.wake(for: 1)
        }
        signal(woken)
    }

    private func signal(_ count: Int) {
        for _ in 0..<count { wake.signal() }
    }

    // MARK: - Threads

    private func run() {
        while true {
            switch next() {
            case .run(let job):
                job.ticket.begin()
                let isQueued = job.ticket.end(job.turn())
                if isQueued { append(job) }
                // Last, so that a job with more work never appears to be idle.
                state.withLock { $0.running -= 1 }
            case .wait: wake.wait()
            case .exit: return
            }
        }
    }

    private func next() -> Step {
        let now = WorkBucket.now()
        var held: [WorkRate] = []
        let step = state.withLock { state -> Step in
            if state.isStopping { return .exit }
            guard let job = state.popFirst(at: now, holding: &held) else {
                state.waiting += 1
                return .wait
            }
            state.running += 1
            return .run(job)
        }
        for client in held { hold(client, for: client.overdraft(at: now)) }
        return step
    }

    /// Allows a client to have turns again when its debt is paid.
    private func hold(_ client: WorkRate, for nanoseconds: Int64) {
        state.withLock { state in
            // Under the lock: the deadline may fire before it is stored, and must not replace the following one.
            let deadline = Deadline(after: .nanoseconds(nanoseconds)) { [weak self] in self?.release(client) }
            state.second.hold(client, until: deadline)
        }
    }

    private func release(_ client: WorkRate) {
        signal(state.withLock { $0.wake(for: $0.second.release(client)) })
    }
}
