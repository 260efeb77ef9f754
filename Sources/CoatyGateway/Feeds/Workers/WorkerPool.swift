import Coordination
import DequeModule
import Dispatch
import Foundation
import Synchronization

/// A fixed number of threads that run jobs in turns.
///
/// There are two queues. Jobs that are not urgent, and jobs whose last turn used up its limit, wait in the second one, which gets
/// every fourth turn: they delay each other, and hardly the others. The lock is a leaf: nothing else is locked while it is held.
final class WorkerPool: Component {
    /// The number of threads of the pool for events.
    ///
    /// At least two, so that one long turn does not hold up all feeds.
    static let eventWorkers = max(2, ProcessInfo.processInfo.activeProcessorCount)
    /// Every such turn belongs to the second queue.
    private static let turnOfSecondQueue = 4
    /// How long ``stop()`` waits for running turns.
    static let stopTimeout = DispatchTimeInterval.seconds(1)

    private struct State {
        var first: Deque<any Job> = []
        var second: Deque<any Job> = []
        /// Counts the turns, to choose the queue.
        var turns = 0
        var running = 0
        var isStopping = false

        mutating func append(_ job: any Job) {
            if job.ticket.mayWait { second.append(job) } else { first.append(job) }
        }

        mutating func popFirst() -> (any Job)? {
            turns += 1
            if turns % WorkerPool.turnOfSecondQueue == 0, let job = second.popFirst() { return job }
            return first.popFirst() ?? second.popFirst()
        }
    }

    private let name: String
    private let threads: Int
    private let state = Mutex(State())
    /// Its value is the number of queued jobs.
    private let queued = DispatchSemaphore(value: 0)
    private let exited = DispatchGroup()

    init(name: String, threads: Int) {
        self.name = name
        self.threads = threads
    }

    /// Schedules a turn of a job, from any thread. A job that is queued already is not queued again; one that is running gets
    /// another turn. Jobs that are scheduled before ``start()`` wait for it.
    func schedule(_ job: any Job) {
        if job.ticket.schedule() { append(job) }
    }

    /// Whether no job is queued or running.
    var isIdle: Bool { state.withLock { $0.first.isEmpty && $0.second.isEmpty && $0.running == 0 } }

    func start() {
        for _ in 0..<threads {
            exited.enter()
            let thread = Thread { [self] in
                run()
                exited.leave()
            }
            thread.name = name
            // As the main thread has: JSON may be nested deeply.
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    /// Ends the threads after their running turns, and discards the queued jobs. Waits for at most ``stopTimeout``.
    func stop() async {
        let (first, second) = state.withLock { state in
            defer { (state.first, state.second, state.isStopping) = ([], [], true) }
            return (state.first, state.second)
        }
        for _ in 0..<threads { queued.signal() }
        // Outside the lock: a job that nothing else holds is destroyed here.
        withExtendedLifetime((first, second)) {}
        await onBlockingThread { [exited] in _ = exited.wait(timeout: .now() + Self.stopTimeout) }
    }

    private func append(_ job: any Job) {
        let isQueued = state.withLock { state in
            guard !state.isStopping else { return false }
            state.append(job)
            return true
        }
        if isQueued { queued.signal() }
    }

    private func run() {
        while true {
            queued.wait()
            let (next, isStopping) = state.withLock { state -> ((any Job)?, Bool) in
                guard !state.isStopping, let job = state.popFirst() else { return (nil, state.isStopping) }
                state.running += 1
                return (job, false)
            }
            if isStopping { return }
            guard let job = next else { continue }
            job.ticket.begin()
            let isQueued = job.ticket.end(job.turn())
            if isQueued { append(job) }
            // Last, so that a job with more work never seems to be idle.
            state.withLock { $0.running -= 1 }
        }
    }
}
