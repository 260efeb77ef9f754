import Dispatch

/// A serial executor on a dispatch queue of its own, so that long work on it takes no thread from other actors.
final class RoutingExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "coaty.io-routing")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
}
