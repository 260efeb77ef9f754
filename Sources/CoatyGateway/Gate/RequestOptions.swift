import Coaty

/// The limit, the timeout and the end condition of a request.
struct RequestOptions: Sendable {
    static let defaultLimit = 1
    static let limits = 0...Int(Int32.max)
    /// In milliseconds.
    static let defaultTimeout = 2000

    /// The number of responses after which the request ends; 0 for all responses until the timeout.
    let limit: Int
    /// In milliseconds.
    let timeout: Int
    /// The request ends with the first response that matches this condition.
    let until: CompiledCondition?

    /// Parses `limit`, `timeout` and `until`.
    ///
    /// - Throws: an error with the parameter that is invalid.
    init(_ parameters: some ClientParameters) throws {
        let maximumTimeout = parameters.limits.timeout
        timeout = try parameters.integer("timeout", in: 1...maximumTimeout) ?? min(Self.defaultTimeout, maximumTimeout)
        limit = try parameters.integer("limit", in: Self.limits) ?? Self.defaultLimit
        until = try parameters.condition("until")
    }
}

extension CompiledCondition {
    /// Returns whether a response matches: the payload of a Return event, or at least one object of any other response.
    func holds(
        forResponse type: CommunicationEventType,
        _ payload: Payload,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        try holds(forOneOf: type == .return ? [payload.json] : payload.allObjects, &budget)
    }
}
