/// Runs asynchronous jobs one at a time, in the order in which they were added.
@ControllerActor
final class RoutingJobs {
    /// Ends when all jobs have ended. Cancelling it cancels all of them.
    private var last: Task<Void, Never>?

    /// Adds a job, which starts when all jobs before it have ended.
    func add<Result: Sendable>(_ job: @escaping @ControllerActor () async -> Result) -> Task<Result, Never> {
        let task = Task { [last] in
            if let last { await last.cancellableValue() }
            return await job()
        }
        last = Task { _ = await task.cancellableValue() }
        return task
    }

    /// Cancels the job that is running and those that wait. They still run in order, to a quick end.
    func cancel() { last?.cancel() }
}

extension Task where Failure == Never {
    /// The value. If the awaiting task is cancelled, so is this one.
    @discardableResult
    fileprivate func cancellableValue() async -> Success {
        await withTaskCancellationHandler {
            await value
        } onCancel: {
            cancel()
        }
    }
}
