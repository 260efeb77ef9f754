import Coaty
import HTTPServer
import Synchronization

/// Collects the responses to one request and sends them to the client in one HTTP response:
/// `{"responses":[{"sourceId":…,"ms":…,"data":…},…],"reason":…}`.
final class CollectedResponses: ResponseSink {
    /// Maximum size of the responses to one request, in bytes. At the maximum, the request ends.
    static let maximumBytes = 16 << 20

    private struct State {
        var body: [UInt8] = Array(#"{"responses":["#.utf8)
        /// Bytes of the body that count toward the shared memory.
        var taken = 0
        /// Ends the observation of the access policy.
        var onEnd: (@Sendable () -> Void)?
        var isEnded = false
    }

    private let pending: PendingResponse
    private let memory: QueueMemory
    private let unanswered: @Sendable () -> HTTPResponse?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - memory: counts the collected bytes for the client.
    ///   - unanswered: the HTTP response if no response was received before the timeout; nil to send an empty list.
    init(
        _ pending: PendingResponse,
        memory: QueueMemory,
        unanswered: @autoclosure @escaping @Sendable () -> HTTPResponse?
    ) {
        self.pending = pending
        self.memory = memory
        self.unanswered = unanswered
    }

    func take(_ frame: ServerFrame) -> Bool {
        state.withLock { state in
            let size = state.body.count
            if state.taken > 0 { state.body.append(UInt8(ascii: ",")) }
            state.body.append(UInt8(ascii: "{"))
            // All responses have the same event name, which the client knows, so the first member is left out.
            state.body += frame.members.drop { $0 != UInt8(ascii: ",") }.dropFirst()
            state.body.append(UInt8(ascii: "}"))
            state.taken += state.body.count - size
            let hasRoom = memory.add(state.body.count - size)
            return state.body.count < Self.maximumBytes && (hasRoom || state.taken < OutboundQueue.guaranteedBytes)
        }
    }

    /// Keeps a closure that is called once the request has ended.
    func hold(_ onEnd: @escaping @Sendable () -> Void) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.onEnd = onEnd }
            return state.isEnded
        }
        if isEnded { onEnd() }
    }

    /// Ends the request with a problem.
    func fail(_ problem: Problem, cancelling run: RequestRun) {
        pending.complete(problem.response())
        run.cancel()
    }

    func fail(_ problem: Problem) {
        let (_, taken) = release()
        memory.add(-taken)
        pending.complete(problem.response())
    }

    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) {
        var (body, taken) = release()
        memory.add(-taken)
        if taken == 0, reason == .offline {
            pending.complete(Problems.brokerUnavailable)
        } else if taken == 0, !isFiltered, reason == .timeout, let unanswered = unanswered() {
            pending.complete(unanswered)
        } else {
            body += #"],"reason":"\#(reason.rawValue)"\#(isFiltered ? #","filtered":true"# : "")}"#.utf8
            pending.complete(HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: body))
        }
    }

    /// Ends the collection.
    ///
    /// - Returns: the body so far, and how many of its bytes count toward the shared memory.
    private func release() -> (body: [UInt8], taken: Int) {
        let (body, taken, onEnd) = state.withLock { state in
            defer {
                state.body = []
                state.onEnd = nil
                state.isEnded = true
            }
            return (state.body, state.taken, state.onEnd)
        }
        onEnd?()
        return (body, taken)
    }
}
