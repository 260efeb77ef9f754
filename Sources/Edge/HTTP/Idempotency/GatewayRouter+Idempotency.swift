import Access
import Base
import Gate
import HTTPServer
import ProblemDetails

extension GatewayRouter {
    /// Handles a request of a principal that publishes something. With an `Idempotency-Key`, the claim is that of the
    /// first request with the key. If the response is sent later, the handler stores the answer itself.
    typealias PublishingHandler = @Sendable (borrowing HTTPRequest, Principal, IdempotencyClaim?) -> HTTPReply

    private static let keyField = "Idempotency-Key"
    private static let maximumKeySize = 255
    private static let inProgress = Problems.requestInProgress.response()
    private static let reused = Problems.keyReused.response()
    private static let malformed = Problems.invalidParameter(
        keyField,
        "must have 1 to \(maximumKeySize) visible ASCII characters"
    ).response()
    private static let streamed = Problems.invalidParameter(
        keyField,
        "is for collected responses, not for application/x-ndjson"
    ).response()

    /// Registers a handler for operations that publish something. A request that repeats the `Idempotency-Key` of
    /// another one gets the same answer.
    ///
    /// An answer is stored if something was published: for immediate responses, if the status is below 400.
    ///
    /// - Parameters:
    ///   - query: the names of the query parameters that the handler reads. A request with others is refused.
    ///   - canStream: whether the client can receive the responses of agents one by one, which can't be repeated.
    mutating func onPost(
        _ path: String,
        query: QueryNames = [],
        publishingBy gate: Gate,
        canStream: Bool = false,
        _ handler: @escaping PublishingHandler
    ) {
        on(.post, path, query: query) { [idempotency] request, principal in
            guard let key = request.header(Self.keyField) else { return handler(request, principal, nil) }
            guard (1...Self.maximumKeySize).contains(key.utf8.count), key.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
                return .response(Self.malformed)
            }
            if canStream, request.prefersNDJSON { return .response(Self.streamed) }
            let account = gate.account(of: principal)
            do throws(Problem) {
                switch try idempotency.begin(key, RequestFingerprint(request), for: account) {
                case .repeated(let response): return .response(response.adding([("Idempotency-Replayed", "true")]))
                case .inProgress: return .response(Self.inProgress)
                case .different: return .response(Self.reused)
                case .first(let claim):
                    let reply = handler(request, principal, claim)
                    if case .response(let response) = reply, response.status < 400 { claim.keep(response) }
                    return reply
                }
            } catch {
                return .response(error.response())
            }
        }
    }
}

extension Problems {
    static let requestInProgress = Problem(
        type: typePrefix + "request-in-progress",
        title: "Request in progress",
        status: 409,
        detail: "The first request with this Idempotency-Key is still in progress. Repeat the request later.",
        headers: retry
    )

    static let keyReused = Problem(
        type: typePrefix + "idempotency-key-reused",
        title: "Idempotency key reused",
        status: 422,
        detail: "A different request has used this Idempotency-Key. Use a new key for each request."
    )

    /// - Parameters:
    ///   - problem: the refusal of a further key.
    ///   - lifetime: the time for which an answer is stored.
    ///   - wait: the time until a key is released.
    static func tooManyKeys(_ problem: Problem, lifetime: Duration, wait: Duration) -> Problem {
        var problem = problem
        let minutes = Int(lifetime / .seconds(60))
        let whose =
            problem.status == 429
            ? "You have used up your share of idempotency keys" : "All idempotency keys are in use"
        problem.detail = "\(whose). A key becomes free \(minutes) minutes after the response."
        problem.headers = [("Retry-After", "\(max(1, Int((wait / .seconds(1)).rounded(.up))))")]
        return problem
    }
}
