import Coaty
import Synchronization

/// The receiver of the responses to one request.
protocol ResponseSink: Sendable {
    /// Accepts a response. Must not block or call the run, which holds its lock.
    ///
    /// - Returns: whether there is room for more responses. If not, the request ends.
    func take(_ frame: ServerFrame) -> Bool

    /// Called once, after the last response.
    ///
    /// - Parameter isFiltered: whether there may have been responses that the client must not see.
    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool)
}

/// A published request, which passes its responses to a sink until it ends.
///
/// It ends at its limit or timeout, with a response that matches `until`, when the connection to the broker is lost, when the
/// sink has no room, or when the client cancels it.
final class RequestRun: Sendable {
    private struct State {
        var isDone = false
        /// The number of responses that count toward the limit.
        var counted = 0
        var request: PendingRequest?
        var deadline: Deadline?
    }

    private let options: RequestOptions
    private let ownId: CoatyUUID
    private let sink: any ResponseSink
    private let isFiltered: Bool
    private let count: RequestCount
    private let published = ContinuousClock.now
    private let state = Mutex(State())

    private init(
        _ options: RequestOptions,
        ownId: CoatyUUID,
        sink: any ResponseSink,
        isFiltered: Bool,
        count: RequestCount
    ) {
        self.options = options
        self.ownId = ownId
        self.sink = sink
        self.isFiltered = isFiltered
        self.count = count
        count.begin()
    }

    /// Publishes a request if the agent is connected.
    ///
    /// - Parameters:
    ///   - count: counts the request, even if it can't be published.
    ///   - isFiltered: whether the sink is to report that responses may have been withheld.
    ///   - visible: returns the part of a response that the client may see; nil if it must not see anything. A hidden response
    ///     does not count and can't end the request.
    ///   - observe: called with each response, including those that are hidden or arrive too late for the sink.
    /// - Throws: if the request can't be published. The sink's `end` is then not called.
    static func start<Request: RequestEvent>(
        _ request: Request,
        _ options: RequestOptions,
        on manager: CommunicationManager,
        into sink: any ResponseSink,
        count: RequestCount,
        isFiltered: Bool = false,
        visible: @escaping @Sendable (Payload) -> Payload? = { $0 },
        observe: (@Sendable (Request.Response) -> Void)? = nil
    ) throws(CommunicationError) -> RequestRun {
        let run = RequestRun(options, ownId: manager.identityId, sink: sink, isFiltered: isFiltered, count: count)
        do throws(CommunicationError) {
            // A client must not wait until the broker is available.
            guard manager.isConnected else { throw .offline }
            let pending = try manager.publish(request, onEnd: { run.end(.offline) }) { response in
                observe?(response)
                if let payload = visible(response.payload) { run.take(response, payload) }
            }
            // The connection was lost after the check. If the request was sent nevertheless, it continues.
            if pending.delivery == .deferred, pending.withdraw(), run.close() { throw .offline }
            run.hold(pending)
            return run
        } catch {
            _ = run.close()
            throw error
        }
    }

    /// Ends the request because the client no longer wants it.
    func cancel() { end(.cancelled) }

    /// Keeps the pending request and its timer until the end; cancels the request if the run has already ended.
    private func hold(_ request: PendingRequest) {
        let isDone = state.withLock { state in
            guard !state.isDone else { return true }
            state.request = request
            state.deadline = Deadline(after: .milliseconds(options.timeout)) { self.end(.timeout) }
            return false
        }
        if isDone { request.cancel() }
    }

    private func take(_ response: some CommunicationEvent, _ payload: Payload) {
        let frame = ServerFrame.response(
            response,
            payload,
            milliseconds: Int((ContinuousClock.now - published) / .milliseconds(1))
        )
        let isCounted = !isOwnIdentity(response)
        let isAwaited = options.until?.holds(forResponse: type(of: response).eventType, payload) ?? false
        let reason = state.withLock { state -> ServerFrame.EndReason? in
            guard !state.isDone else { return nil }
            // Under the lock, so that no response follows the end.
            let hasRoom = sink.take(frame)
            if isCounted { state.counted += 1 }
            if isAwaited { return .until }
            if options.limit > 0 && state.counted >= options.limit { return .limit }
            return hasRoom ? nil : .overflow
        }
        if let reason { end(reason) }
    }

    /// Returns whether a response is the requesting agent's own identity. An agent that requests identities also
    /// answers its own request, which does not count. Other responses with the agent's id come from clients.
    private func isOwnIdentity(_ response: some CommunicationEvent) -> Bool {
        type(of: response).eventType == .resolve && response.sourceId == ownId
            && response.payload.json["object"]?["objectId"]?.string == ownId.string
    }

    private func end(_ reason: ServerFrame.EndReason) {
        if close() { sink.end(reason, isFiltered: isFiltered) }
    }

    /// Closes the run and releases its resources.
    ///
    /// - Returns: whether this call ended the run.
    private func close() -> Bool {
        let (isFirst, request, deadline) = state.withLock { state -> (Bool, PendingRequest?, Deadline?) in
            defer { state.isDone = true }
            return (!state.isDone, state.request.take(), state.deadline.take())
        }
        if isFirst { count.end() }
        // Outside the lock, because cancelling unsubscribes.
        request?.cancel()
        deadline?.cancel()
        return isFirst
    }
}
