/// Runs asynchronous jobs one at a time, in the order in which they were added.
@ControllerActor
final class RoutingJobs {
    /// Ends when all jobs have ended. Cancelling it cancels all of them.
    private var last: Task<Void, Never>?

    /// Adds a job, which starts after all earlier jobs.
    func add<Result: Sendable>(_ job: @escaping @ControllerActor () async -> Result) -> Task<Result, Never> {
        let task = Task { [last] in
            if let last { await last.cancellableValue() }
            return await job()
        }
        last = Task { _ = await task.cancellableValue() }
        return task
    }

    /// Cancels the running job and the queued ones. They still run in order, but end quickly.
    func cancel() { last?.cancel() }
}

extension Task where Failure == Never {
    /// Returns the value. If the awaiting task is cancelled, this task is cancelled too.
    @discardableResult
    fileprivate func cancellableValue() async -> Success {
        await withTaskCancellationHandler {
            await value
        } onCancel: {
            cancel()
        }
    }
}
