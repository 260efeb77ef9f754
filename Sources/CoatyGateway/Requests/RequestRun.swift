import Coaty
import Synchronization

/// Takes the responses to one request.
protocol ResponseSink: Sendable {
    /// Takes a response. Must not wait, nor call the run.
    ///
    /// - Returns: whether there is room for more; where there is none, the request ends.
    func take(_ frame: StreamFrame) -> Bool

    /// There are no more responses. Called once.
    func end(_ reason: StreamFrame.EndReason)
}

/// One request that has been published, and hands its responses to a sink until it ends: at its limit or timeout, by a
/// response that it waits for, with the link to the broker, where there is no more room, or because the client no longer wants
/// it.
final class RequestRun: Sendable {
    private struct State {
        var isDone = false
        /// Responses that count for the limit.
        var counted = 0
        var request: PendingRequest?
        var deadline: Deadline?
    }

    private let options: RequestOptions
    private let ownId: CoatyUUID
    private let sink: any ResponseSink
    private let count: RequestCount
    private let published = ContinuousClock.now
    private let state = Mutex(State())

    private init(_ options: RequestOptions, ownId: CoatyUUID, sink: any ResponseSink, count: RequestCount) {
        self.options = options
        self.ownId = ownId
        self.sink = sink
        self.count = count
        count.begin()
    }

    /// Publishes a request if the agent is connected.
    ///
    /// - Parameters:
    ///   - count: counts it, also where it can't be published.
    ///   - observe: is told each response, also those that come too late for the sink.
    /// - Throws: where it can't be published; then the sink is not told of an end.
    static func start<Request: RequestEvent>(
        _ request: Request,
        _ options: RequestOptions,
        on manager: CommunicationManager,
        into sink: any ResponseSink,
        count: RequestCount,
        observe: (@Sendable (Request.Response) -> Void)? = nil
    ) throws(CommunicationError) -> RequestRun {
        let run = RequestRun(options, ownId: manager.identityId, sink: sink, count: count)
        do throws(CommunicationError) {
            // A client is not to wait for the broker.
            guard manager.isConnected else { throw .offline }
            let pending = try manager.publish(request, onEnd: { run.end(.offline) }) { response in
                observe?(response)
                run.take(response)
            }
            // The connection was lost in between. If the request was sent after all, it goes on.
            if pending.delivery == .deferred, pending.withdraw(), run.close() { throw .offline }
            run.hold(pending)
            return run
        } catch {
            _ = run.close()
            throw error
        }
    }

    /// Ends the request for a client that no longer wants it.
    func cancel() { end(.cancelled) }

    /// Keeps what has to be released at the end, which may already have come.
    private func hold(_ request: PendingRequest) {
        let isDone = state.withLock { state in
            guard !state.isDone else { return true }
            state.request = request
            state.deadline = Deadline(after: .milliseconds(options.timeout)) { self.end(.timeout) }
            return false
        }
        if isDone { request.cancel() }
    }

    private func take(_ response: some CommunicationEvent) {
        let frame = StreamFrame.response(
            response,
            milliseconds: Int((ContinuousClock.now - published) / .milliseconds(1))
        )
        let isCounted = !isOwnIdentity(response)
        let isAwaited = options.until?.holds(for: response) ?? false
        let reason = state.withLock { state -> StreamFrame.EndReason? in
            guard !state.isDone else { return nil }
            // Under the lock, so that no response comes behind the end.
            let hasRoom = sink.take(frame)
            if isCounted { state.counted += 1 }
            if isAwaited { return .until }
            if options.limit > 0 && state.counted >= options.limit { return .limit }
            return hasRoom ? nil : .overflow
        }
        if let reason { end(reason) }
    }

    /// Who asks for identities is itself among those that answer, and does not mean itself. Other responses under the same
    /// id are those of clients.
    private func isOwnIdentity(_ response: some CommunicationEvent) -> Bool {
        type(of: response).eventType == .resolve && response.sourceId == ownId
            && response.payload.json["object"]?["objectId"]?.string == ownId.string
    }

    private func end(_ reason: StreamFrame.EndReason) {
        if close() { sink.end(reason) }
    }

    /// - Returns: whether this call was the one that ended the run.
    private func close() -> Bool {
        let (isFirst, request, deadline) = state.withLock { state -> (Bool, PendingRequest?, Deadline?) in
            defer { state.isDone = true }
            return (!state.isDone, state.request.take(), state.deadline.take())
        }
        if isFirst { count.end() }
        // Outside of the lock: cancelling unsubscribes.
        request?.cancel()
        deadline?.cancel()
        return isFirst
    }
}
