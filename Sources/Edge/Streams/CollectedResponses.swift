import Base
import Coaty
import Feeds
import Gate
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
        var places: [any AnyObject & Sendable] = []
    }

    private let answer: @Sendable (HTTPResponse) -> Void
    /// The charge of the body until it is sent.
    private let charge: Charge
    private let maximumBytes: Int
    private let minimum: Int
    private let timeout: Int
    private let outcome: ActivityOutcome
    private let state = Mutex(State())

    /// - Parameters:
    ///   - answer: called with the HTTP response. Only the first call counts.
    ///   - charge: the charge, which is resized to the size of the body.
    ///   - maximumBytes: the maximum size of the responses; the request ends there.
    ///   - minimum: the number of responses without which a timeout is a problem.
    ///   - timeout: the timeout, in milliseconds.
    ///   - outcome: counts the response before it is sent.
    init(
        answer: @escaping @Sendable (HTTPResponse) -> Void,
        charge: Charge,
        maximumBytes: Int,
        minimum: Int,
        timeout: Int,
        outcome: ActivityOutcome
    ) {
        self.answer = answer
        self.charge = charge
        self.maximumBytes = maximumBytes
        self.minimum = minimum
        self.timeout = timeout
        self.outcome = outcome
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

    /// Frees the places, because the request was not published.
    func release() { state.withLock { $0.places = [] } }

    func occupy(_ places: [any AnyObject & Sendable]) { state.withLock { $0.places = places } }

    /// Nothing waits for the client any more.
    func discard(_ problem: Problem) {}

    func fail(_ problem: Problem) {
        state.withLock { ($0.body, $0.places) = ([], []) }
        outcome.set(OperationCounts.Outcome(problem))
        answer(problem.afterPublication.response())
    }

    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) {
        var (body, count) = state.withLock { state in
            defer { (state.body, state.places) = ([], []) }
            return (state.body, state.count)
        }
        if count == 0, reason == .offline { return fail(Problems.connectionLost) }
        if count < minimum, reason == .timeout {
            let detail = "\(count) responses arrived within \(timeout) ms, fewer than min, which is \(minimum)."
            return fail(Problems.noAnswer(detail))
        }
        outcome.set(OperationCounts.Outcome(reason))
        body += #"],"reason":"\#(reason.rawValue)"\#(isFiltered ? #","filtered":true"# : "")}"#.utf8
        let headers = [(name: "Content-Type", value: "application/json")]
        answer(HTTPResponse(status: 200, headers: headers, body: body, holding: charge))
    }
}
