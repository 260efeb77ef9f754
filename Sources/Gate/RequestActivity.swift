package import Base
import Coaty
import DequeModule
package import Feeds
package import ProblemDetails
import Synchronization

/// The receiver of the responses to one request. Called on one thread at a time.
package protocol ResponseSink: Sendable {
    /// Accepts a response. Must not block or call the activity, which holds its lock.
    ///
    /// - Returns: whether there is space for more responses. If not, the request ends.
    func take(_ frame: ServerFrame) -> Bool

    /// Called once, after the last response.
    ///
    /// - Parameter isFiltered: whether there may have been responses that the client must not see.
    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool)

    /// Called once, instead of ``end(_:isFiltered:)``, if the request can't continue.
    func fail(_ problem: Problem)

    /// Keeps the places that the client uses for the request until it gets the end, so that it can then send another one.
    func occupy(_ places: [any AnyObject & Sendable])

    /// Called if the request is no longer allowed after its end, because responses may still be queued.
    func discard(_ problem: Problem)
}

/// A request of a client, which passes the responses to a sink until it ends.
///
/// It ends at its limit or timeout, with a response that matches `until`, when the broker connection is lost, when the
/// sink has no space, when it is no longer allowed, or when the client cancels it. The broker's thread only appends a
/// response to the intake; the activity's turns evaluate the responses and build their texts, in order. An end takes
/// effect after the responses that were received before it.
package final class RequestActivity: Activity, Job {
    /// A received response.
    private struct Arrival: Sendable {
        let type: CommunicationEventType
        let sourceId: CoatyUUID?
        let payload: Payload
        /// Time since the request was published.
        let milliseconds: Int
    }

    /// What the client uses for a request that has not started. Then its place and charge belong to the sink.
    struct Holdings: Sendable {
        let place: Place
        let charge: Charge
        /// Until the request is written. Reserved for one publication.
        let outbox: Place
    }

    private struct State {
        var holdings: Holdings?
        var sink: (any ResponseSink)?
        var published = ContinuousClock.now
        var isDone = false
        /// The problem for which the request must not start.
        var problem: Problem?
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

    package let ticket: JobTicket
    package let outcome: ActivityOutcome
    /// The account that is charged for the request.
    package let account: ClientAccount
    private let send: SendRequest
    private let view: AnswerView
    private let manager: CommunicationManager
    private let network: NetworkParts
    private let client: GateClient
    /// The charge of the arrivals.
    private let charge: Charge
    private let state: Mutex<State>

    /// - Parameters:
    ///   - view: the part of the responses that the client may see.
    ///   - account: is charged for the evaluation of the responses, which stay queued while it is overdrawn, and for the
    ///     memory of queued ones.
    ///   - manager: publishes the request.
    init(
        _ send: SendRequest,
        _ view: AnswerView,
        _ account: ClientAccount,
        _ holdings: Holdings,
        on manager: CommunicationManager,
        in network: NetworkParts,
        for client: GateClient,
        _ outcome: ActivityOutcome
    ) {
        ticket = JobTicket(client: account.work)
        charge = account.memory.chargeAnyway(0)
        state = Mutex(State(holdings: holdings))
        self.send = send
        self.view = view
        self.account = account
        self.manager = manager
        self.network = network
        self.client = client
        self.outcome = outcome
    }

    deinit { client.remove(self) }

    /// Publishes the request and passes its responses to the sink until it ends. Call it only once.
    ///
    /// - Throws: if the request can't be published, or is no longer allowed. The sink's `end` is then not called.
    package func start(into sink: any ResponseSink) throws {
        let (holdings, problem) = state.withLock { state -> (Holdings?, Problem?) in
            guard !state.isDone else { return (nil, state.problem) }
            (state.sink, state.published) = (sink, .now)
            network.requestCount.begin()
            return (state.holdings.take(), nil)
        }
        if let problem {
            outcome.set(OperationCounts.Outcome(problem))
            throw problem
        }
        // Without holdings, the client has left.
        guard let holdings else { return }
        sink.occupy([holdings.place, holdings.charge])
        do throws(CommunicationError) {
            try publish(send.request, holding: holdings.outbox)
        } catch {
            outcome.set(OperationCounts.Outcome(error))
            close()
            throw error
        }
    }

    private func publish(_ request: some ClientRequest, holding outbox: Place) throws(CommunicationError) {
        // A client must not wait until the broker is available.
        guard manager.isConnected else { throw .offline }
        guard !state.withLock(\.isDone) else { return }
        let pending = try manager.publish(request, holding: outbox, onEnd: { self.end(.offline) }) { response in
            // Also with responses that are hidden, or arrive too late for the sink.
            request.note(response, in: self.network)
            self.take(response)
        }
        // The connection was lost after the check. If the request was sent nevertheless, it continues.
        if pending.delivery == .deferred, pending.withdraw(), close() { throw .offline }
        hold(pending)
    }

    // MARK: - Activity

    package var operation: any ControlledOperation { send }

    /// The new grants apply to responses from now on.
    package func apply(_ permit: Permit) { view.change(send.view(permit)) }

    package func refuse(_ problem: Problem) {
        if !finish(.failed(problem)) { state.withLock(\.sink)?.discard(problem) }
    }

    package func end() {
        finish(.done(.cancelled))
        client.remove(self)
        // Released outside the lock, because it may hold the last reference to its connection.
        let sink = state.withLock { $0.sink.take() }
        withExtendedLifetime(sink) {}
    }

    // MARK: - Responses

    /// Keeps the pending request and its timer until the end; cancels the request if the activity has already ended.
    private func hold(_ request: PendingRequest) {
        let isDone = state.withLock { state in
            guard !state.isDone else { return true }
            state.request = request
            state.deadline = Deadline(after: .milliseconds(send.options.timeout)) { self.end(.timeout) }
            return false
        }
        if isDone { request.cancel() }
    }

    private func take(_ response: some CommunicationEvent) {
        let (payload, now, options) = (response.payload, ContinuousClock.now, send.options)
        state.withLock { state in
            guard !state.isDone, state.due == nil else { return }
            let arrival = Arrival(
                type: type(of: response).eventType,
                sourceId: response.sourceId,
                payload: payload,
                milliseconds: Int((now - state.published) / .milliseconds(1))
            )
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
        network.feeds.workers.schedule(self)
    }

    /// Ends the request after the responses that have been received.
    private func end(_ reason: ServerFrame.EndReason) {
        state.withLock { $0.due = $0.due ?? reason }
        network.feeds.workers.schedule(self)
    }

    // MARK: - Turns

    package func turn() -> TurnEnd {
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
            if let end = pass(arrival) { finish(end) }
            if limit.isOver { return .again }
        }
    }

    /// Passes a response to the sink.
    ///
    /// - Returns: how it ends the request; nil if it does not.
    private func pass(_ arrival: Arrival) -> End? {
        // A hidden response does not count and can't end the request.
        guard let payload = view.visible(arrival.payload, of: send.pattern) else { return nil }
        let options = send.options
        let (isAwaited, steps) = options.isAwaited(arrival.type, payload)
        account.work.spend(steps + WorkRate.steps(toPass: payload.bytes.count))
        guard let isAwaited else { return .failed(Problems.filterTooExpensive) }
        let frame = ServerFrame.response(
            arrival.type,
            from: arrival.sourceId,
            payload,
            milliseconds: arrival.milliseconds
        )
        let isCounted = !isOwnIdentity(arrival)
        return state.withLock { state -> End? in
            guard !state.isDone, let sink = state.sink else { return nil }
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
        response.type == .resolve && response.sourceId == manager.identityId
            && response.payload.json["object"]?["objectId"]?.string == manager.identityId.string
    }

    // MARK: - End

    /// - Returns: whether this call ended the request.
    @discardableResult
    private func finish(_ end: End) -> Bool {
        // The client does not wait until the request is unsubscribed.
        switch end {
        case .done(let reason): close { $0.end(reason, isFiltered: view.isRestricted) }
        case .failed(let problem): close(for: problem) { $0.fail(problem) }
        }
    }

    /// Ends the request and releases its resources.
    ///
    /// - Parameters:
    ///   - problem: the problem for which it must not start.
    ///   - onEnd: called before the request is cancelled, if this call ended a request that had started.
    /// - Returns: whether this call ended the request.
    @discardableResult
    private func close(for problem: Problem? = nil, _ onEnd: (any ResponseSink) -> Void = { _ in }) -> Bool {
        let closed = state.withLock { state -> State? in
            guard !state.isDone else { return nil }
            let closed = state
            state = State(sink: state.sink, isDone: true, problem: problem)
            _ = charge.resize(to: 0)
            return closed
        }
        guard let closed else { return false }
        if let sink = closed.sink {
            network.requestCount.end()
            onEnd(sink)
        }
        // Outside the lock, because cancelling unsubscribes.
        closed.request?.cancel()
        closed.deadline?.cancel()
        return true
    }
}
