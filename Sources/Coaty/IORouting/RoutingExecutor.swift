import Dispatch

/// A serial executor on a separate dispatch queue, so that long-running work on it blocks no thread of other actors.
final class RoutingExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "coaty.io-routing")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
}
