import Base
import Coaty
import HTTPServer
import ProblemDetails
import Synchronization

/// Collects the responses to one request and sends them to the client in one HTTP response:
/// `{"responses":[{"sourceId":…,"ms":…,"data":…},…],"reason":…}`.
final class CollectedResponses: ResponseSink {
    /// An upper bound of the braces and the comma that a response needs.
    private static let punctuation = 4

    private struct State {
        var body: [UInt8] = Array(#"{"responses":["#.utf8)
        /// The number of responses.
        var count = 0
        /// Ends the observation of the access policy.
        var onEnd: (@Sendable () -> Void)?
        var isEnded = false
    }

    private let answer: @Sendable (HTTPResponse) -> Void
    /// The charge of the body until it is sent.
    private let charge: Charge
    private let maximumBytes: Int
    private let minimum: Int
    private let timeout: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - answer: called with the HTTP response. Only the first call counts.
    ///   - charge: the charge, which is resized to the size of the body.
    ///   - maximumBytes: the maximum size of the responses; the request ends there.
    ///   - minimum: the number of responses without which a timeout is a problem.
    ///   - timeout: the timeout, in milliseconds.
    init(
        answer: @escaping @Sendable (HTTPResponse) -> Void,
        charge: Charge,
        maximumBytes: Int,
        minimum: Int,
        timeout: Int
    ) {
        self.answer = answer
        self.charge = charge
        self.maximumBytes = maximumBytes
        self.minimum = minimum
        self.timeout = timeout
    }

    func take(_ frame: ServerFrame) -> Bool {
        state.withLock { state in
            let size = state.body.count + frame.members.count + Self.punctuation
            if size > state.body.capacity || state.count == 0 {
                let capacity = max(size, min(2 * state.body.capacity, maximumBytes))
                guard charge.resize(to: capacity) else { return false }
                state.body.reserveCapacity(capacity)
            }
            if state.count > 0 { state.body.append(UInt8(ascii: ",")) }
            state.count += 1
            state.body.append(UInt8(ascii: "{"))
            // All responses have the same event name, which the client knows, so the first member is left out.
            state.body += frame.members.drop { $0 != UInt8(ascii: ",") }.dropFirst()
            state.body.append(UInt8(ascii: "}"))
            return state.body.count < maximumBytes
        }
    }

    /// Stores a closure that is called once the request has ended.
    func hold(_ onEnd: @escaping @Sendable () -> Void) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.onEnd = onEnd }
            return state.isEnded
        }
        if isEnded { onEnd() }
    }

    /// Ends the request with a problem.
    func fail(_ problem: Problem, cancelling run: RequestRun) {
        answer(problem.afterPublication.response())
        run.cancel()
    }

    func fail(_ problem: Problem) {
        _ = release()
        answer(problem.afterPublication.response())
    }

    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) {
        var (body, count) = release()
        if count == 0, reason == .offline {
            answer(Problems.connectionLost.afterPublication.response())
        } else if count < minimum, reason == .timeout {
            let detail = "\(count) responses arrived within \(timeout) ms, fewer than min, which is \(minimum)."
            answer(Problems.noAnswer(detail).afterPublication.response())
        } else {
            body += #"],"reason":"\#(reason.rawValue)"\#(isFiltered ? #","filtered":true"# : "")}"#.utf8
            let headers = [(name: "Content-Type", value: "application/json")]
            answer(HTTPResponse(status: 200, headers: headers, body: body, holding: charge))
        }
    }

    /// Ends the collection.
    ///
    /// - Returns: the body so far, and the number of responses in it.
    private func release() -> (body: [UInt8], count: Int) {
        let (body, count, onEnd) = state.withLock { state in
            defer {
                state.body = []
                state.onEnd = nil
                state.isEnded = true
            }
            return (state.body, state.count, state.onEnd)
        }
        onEnd?()
        return (body, count)
    }
}
