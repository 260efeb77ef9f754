import Coaty

/// How many responses a request awaits, for how long, and which one ends it.
struct RequestOptions: Sendable {
    static let defaultLimit = 1
    static let limits = 0...Int(Int32.max)
    /// In milliseconds.
    static let defaultTimeout = 2000

    /// After how many responses the request ends; 0 awaits all until the timeout.
    let limit: Int
    /// In milliseconds.
    let timeout: Int
    /// A response that is like this ends the request.
    let until: ObjectFilterCondition?

    /// Reads `limit`, `timeout` and `until`.
    ///
    /// - Parameter maximumTimeout: in milliseconds.
    /// - Throws: what says which parameter can't be used.
    init(_ parameters: some ClientParameters, maximumTimeout: Int) throws {
        timeout = try parameters.integer("timeout", in: 1...maximumTimeout) ?? min(Self.defaultTimeout, maximumTimeout)
        limit = try parameters.integer("limit", in: Self.limits) ?? Self.defaultLimit
        until = try parameters.condition("until")
    }
}

extension ObjectFilterCondition {
    /// Whether a response is one that this asks for: a Return as it is; any other where one of its objects is so.
    func holds(for response: some CommunicationEvent) -> Bool {
        let json = response.payload.json
        if type(of: response).eventType == .return { return holds(forOneOf: [json]) }
        let lists = [json["objects"], json["relatedObjects"]].compactMap(\.self).flatMap { Array($0.elements) }
        return holds(forOneOf: [json["object"]].compactMap(\.self) + lists)
    }
}
