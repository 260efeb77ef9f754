import Coaty
import HTTPServer

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

    /// Reads the query of a request: `limit`, `timeout`, and `until` as JSON.
    ///
    /// - Parameter maximumTimeout: in milliseconds.
    init(_ request: borrowing HTTPRequest, maximumTimeout: Int) throws(InvalidParameter) {
        timeout = try request.integer("timeout", in: 1...maximumTimeout) ?? min(Self.defaultTimeout, maximumTimeout)
        limit = try request.integer("limit", in: Self.limits) ?? Self.defaultLimit
        do {
            until = try request.single("until").map { try Self.condition(Payload(Array($0.utf8)).json) }
        } catch let error as InvalidParameter {
            throw error
        } catch {
            throw InvalidParameter(name: "until", reason: "is no condition: \(error)")
        }
    }

    /// Reads the members `limit`, `timeout` and `until` of an object.
    ///
    /// - Parameter maximumTimeout: in milliseconds.
    init(_ view: JSONView, maximumTimeout: Int) throws(PayloadError) {
        timeout = try view["timeout"]?.integer(in: 1...maximumTimeout) ?? min(Self.defaultTimeout, maximumTimeout)
        limit = try view["limit"]?.integer(in: Self.limits) ?? Self.defaultLimit
        if let condition = view["until"] {
            until = try Self.condition(condition)
        } else {
            until = nil
        }
    }

    private static func condition(_ view: JSONView) throws(PayloadError) -> ObjectFilterCondition {
        try view.checkValues()
        return try ObjectFilterCondition(view)
    }
}

extension ObjectFilterCondition {
    /// Whether a response is one that this asks for: a Return as it is; any other where one of its objects is so.
    func holds(for response: some CommunicationEvent) -> Bool {
        let json = response.payload.json
        if type(of: response).eventType == .return { return matches(json) }
        return [json["object"]].contains { $0.map(matches) ?? false }
            || [json["objects"], json["relatedObjects"]].contains { $0?.elements.contains(where: matches) ?? false }
    }
}
