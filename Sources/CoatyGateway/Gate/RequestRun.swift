import Base
import Coaty
import DequeModule
import ProblemDetails
import Synchronization

/// The receiver of the responses to one request. Called on one thread at a time.
protocol ResponseSink: Sendable {
    /// Accepts a response. Must not block or call the run, which holds its lock.
    ///
    /// - Returns: whether there is space for more responses. If not, the request ends.
    func take(_ frame: ServerFrame) -> Bool

    /// Called once, after the last response.
    ///
    /// - Parameter isFiltered: whether there may have been responses that the client must not see.
    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool)

    /// Called once, instead of ``end(_:isFiltered:)``, if the request can't continue.
    func fail(_ problem: Problem)
}

/// A published request, which passes its responses to a sink until it ends.
///
/// It ends at its limit or timeout, with a response that matches `until`, when the broker connection is lost, when the
/// sink has no space, or when the client cancels it. The broker's thread only appends a response to the intake; the
/// run's turns evaluate the responses and build their texts, in order. An end takes effect after the responses that
/// were received before it.
final class RequestRun: Job {
    /// A received response.
    private struct Arrival: Sendable {
        let type: CommunicationEventType
        let sourceId: CoatyUUID?
        let payload: Payload
        /// Time since the request was published.
        let milliseconds: Int
    }

    private struct State {
        var isDone = false
        var arrivals: Deque<Arrival> = []
        /// Bytes of the arrivals.
        var bytes = 0
        /// The reason why the request ends after the arrivals.
        var due: ServerFrame.EndReason?
        /// The number of responses that count toward the limit.
        var counted = 0
        var request: PendingRequest?
        var deadline: Deadline?
    }

    /// The way in which a response, or its absence, ends the request.
    private enum End {
        case done(ServerFrame.EndReason)
        case failed(Problem)
    }

    let ticket: JobTicket
    private let client: WorkRate
    /// The charge of the arrivals.
    private let charge: Charge
    private let options: RequestOptions
    private let ownId: CoatyUUID
    private let sink: any ResponseSink
    private let isFiltered: Bool
    private let visible: @Sendable (Payload) -> Payload?
    private let count: RequestCount
    private let workers: WorkerPool
    private let published = ContinuousClock.now
    private let state = Mutex(State())

    private init(
        _ options: RequestOptions,
        ownId: CoatyUUID,
        sink: any ResponseSink,
        isFiltered: Bool,
        visible: @escaping @Sendable (Payload) -> Payload?,
        count: RequestCount,
        client: WorkRate,
        memory: MemoryAccount,
        workers: WorkerPool
    ) {
        ticket = JobTicket(client: client)
        self.client = client
        charge = memory.chargeAnyway(0)
        self.options = options
        self.ownId = ownId
        self.sink = sink
        self.isFiltered = isFiltered
        self.visible = visible
        self.count = count
        self.workers = workers
        count.begin()
    }

    /// Publishes a request if the agent is connected.
    ///
    /// - Parameters:
    ///   - place: released when the request is written or given up.
    ///   - count: counts the request, even if it can't be published.
    ///   - client: the client that is charged for evaluating the responses, which stay queued while it is overdrawn.
    ///   - memory: the account to which queued responses are charged.
    ///   - workers: the threads that evaluate the responses.
    ///   - isFiltered: whether the sink must report that responses may have been withheld.
    ///   - visible: returns the part of a response that the client may see; nil if it must not see anything. A hidden
    ///     response does not count and can't end the request.
    ///   - observe: called with each response, including those that are hidden or arrive too late for the sink.
    /// - Throws: if the request can't be published. The sink's `end` is then not called.
    static func start<Request: RequestEvent>(
        _ request: Request,
        _ options: RequestOptions,
        on manager: CommunicationManager,
        holding place: Place? = nil,
        into sink: any ResponseSink,
        count: RequestCount,
        client: WorkRate,
        memory: MemoryAccount,
        workers: WorkerPool,
        isFiltered: Bool = false,
        visible: @escaping @Sendable (Payload) -> Payload? = { $0 },
        observe: (@Sendable (Request.Response) -> Void)? = nil
    ) throws(CommunicationError) -> RequestRun {
        let run = RequestRun(
            options,
            ownId: manager.identityId,
            sink: sink,
            isFiltered: isFiltered,
            visible: visible,
            count: count,
            client: client,
            memory: memory,
            workers: workers
        )
        do throws(CommunicationError) {
            // A client must not wait until the broker is available.
            guard manager.isConnected else { throw .offline }
            let pending = try manager.publish(request, holding: place, onEnd: { run.end(.offline) }) { response in
                observe?(response)
                run.take(response)
            }
            // The connection was lost after the check. If the request was sent nevertheless, it continues.
            if pending.delivery == .deferred, pending.withdraw(), run.close() { throw .offline }
            run.hold(pending)
            return run
        } catch {
            run.close()
            throw error
        }
    }

    /// Ends the request because the client no longer wants it.
    func cancel() { finish(.done(.cancelled)) }

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

    private func take(_ response: some CommunicationEvent) {
        let arrival = Arrival(
            type: type(of: response).eventType,
            sourceId: response.sourceId,
            payload: response.payload,
            milliseconds: Int((ContinuousClock.now - published) / .milliseconds(1))
        )
        state.withLock { state in
            guard !state.isDone, state.due == nil else { return }
            let bytes = state.bytes + arrival.payload.footprint
            guard
                state.arrivals.isEmpty
                    || state.arrivals.count < options.maximumWaiting && bytes <= options.maximumWaitingBytes,
                charge.resize(to: bytes)
            else {
                state.due = .overflow
                return
            }
            state.arrivals.append(arrival)
            state.bytes = bytes
        }
        workers.schedule(self)
    }

    /// Ends the request after the responses that have been received.
    private func end(_ reason: ServerFrame.EndReason) {
        state.withLock { $0.due = $0.due ?? reason }
        workers.schedule(self)
    }

    // MARK: - Turns

    func turn() -> TurnEnd {
        let limit = TurnLimit()
        while true {
            let (arrival, due) = state.withLock { state -> (Arrival?, ServerFrame.EndReason?) in
                guard !state.isDone else { return (nil, nil) }
                let arrival = state.arrivals.popFirst()
                if let arrival {
                    state.bytes -= arrival.payload.footprint
                    _ = charge.resize(to: state.bytes)
                }
                return (arrival, state.due)
            }
            guard let arrival else {
                if let due { finish(.done(due)) }
                return .idle
            }
            if let end = judge(arrival) { finish(end) }
            if limit.isOver { return .again }
        }
    }

    /// Passes a response to the sink.
    ///
    /// - Returns: how it ends the request; nil if it does not.
    private func judge(_ arrival: Arrival) -> End? {
        guard let payload = visible(arrival.payload) else { return nil }
        let (isAwaited, steps) = options.isAwaited(arrival.type, payload)
        client.spend(steps + WorkRate.steps(toPass: payload.bytes.count))
        guard let isAwaited else { return .failed(Problems.filterTooExpensive) }
        let frame = ServerFrame.response(
            arrival.type,
            from: arrival.sourceId,
            payload,
            milliseconds: arrival.milliseconds
        )
        let isCounted = !isOwnIdentity(arrival)
        return state.withLock { state -> End? in
            guard !state.isDone else { return nil }
            // Under the lock, so that no response follows the end.
            let hasRoom = sink.take(frame)
            if isCounted { state.counted += 1 }
            if isAwaited { return .done(.until) }
            if options.limit > 0 && state.counted >= options.limit { return .done(.limit) }
            return hasRoom ? nil : .done(.overflow)
        }
    }

    /// Returns whether a response is the requesting agent's own identity. An agent that requests identities also
    /// answers its own request, which does not count. Other responses with the agent's id come from clients.
    private func isOwnIdentity(_ response: Arrival) -> Bool {
        response.type == .resolve && response.sourceId == ownId
            && response.payload.json["object"]?["objectId"]?.string == ownId.string
    }

    // MARK: - End

    private func finish(_ end: End) {
        // The client does not wait until the request is unsubscribed.
        close {
            switch end {
            case .done(let reason): sink.end(reason, isFiltered: isFiltered)
            case .failed(let problem): sink.fail(problem)
            }
        }
    }

    /// Closes the run and releases its resources.
    ///
    /// - Parameter onEnd: called before, if this call ended the run.
    /// - Returns: whether this call ended the run.
    @discardableResult
    private func close(_ onEnd: () -> Void = {}) -> Bool {
        let (isFirst, request, deadline) = state.withLock { state -> (Bool, PendingRequest?, Deadline?) in
            defer {
                state.isDone = true
                (state.arrivals, state.bytes) = ([], 0)
                _ = charge.resize(to: 0)
            }
            return (!state.isDone, state.request.take(), state.deadline.take())
        }
        if isFirst {
            count.end()
            onEnd()
        }
        // Outside the lock, because cancelling unsubscribes.
        request?.cancel()
        deadline?.cancel()
        return isFirst
    }
}
