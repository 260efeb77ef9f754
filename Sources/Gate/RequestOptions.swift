import Base
import Coaty
package import Feeds

/// The limit, the timeout and the end condition of a request.
package struct RequestOptions: Sendable {
    /// Parameter names.
    package static let parameters: Set = ["limit", "timeout", "until"]

    static let defaultLimit = 1
    package static let limits = 0...Int(Int32.max)
    /// The default timeout, in milliseconds.
    static let defaultTimeout = 2000

    /// The number of responses after which the request ends; 0 for all responses until the timeout.
    package let limit: Int
    /// The timeout, in milliseconds.
    package let timeout: Int
    /// The request ends with the first response that matches this condition.
    let until: ClientCondition?
    /// Maximum number of responses that are queued for evaluation, and of their bytes. Beyond that, or without memory,
    /// the request ends.
    let maximumWaiting: Int
    let maximumWaitingBytes: Int

    /// Parses `limit`, `timeout` and `until`.
    ///
    /// - Throws: an error with the invalid parameter.
    package init(_ parameters: some ClientParameters) throws {
        let maximumTimeout = parameters.limits.timeout
        timeout =
            try parameters.milliseconds("timeout", in: 1...maximumTimeout)
            ?? min(Self.defaultTimeout, maximumTimeout)
        limit = try parameters.integer("limit", in: Self.limits) ?? Self.defaultLimit
        until = try parameters.condition("until")
        maximumWaiting = parameters.limits.waitingResponses
        maximumWaitingBytes = parameters.limits.responseBytes
    }

    /// Returns whether a response ends the request, and the number of evaluation steps. A Return event ends it if its
    /// payload matches ``until``; any other response ends it if at least one of its objects matches. `isAwaited` is nil
    /// if the evaluation takes too many steps.
    func isAwaited(_ type: CommunicationEventType, _ payload: Payload) -> (isAwaited: Bool?, steps: Int) {
        guard let until else { return (false, 0) }
        let (isAwaited, steps) = until.evaluate { (budget) throws(WorkExceeded) in
            try until.condition.holds(forOneOf: type == .return ? [payload.json] : payload.allObjects, &budget)
        }
        return (isAwaited, steps)
    }
}
