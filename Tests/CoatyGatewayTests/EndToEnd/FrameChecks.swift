import Foundation
import TestSupport
import Testing

/// A trait that checks the frames of each test against their schemas when the test ends.
struct FrameChecks: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await function()
        try FrameLog.shared.check()
    }
}

extension Trait where Self == FrameChecks {
    static var frameChecks: Self { Self() }
}

extension FrameClient {
    /// Subscribes, and returns when the subscription is active.
    ///
    /// - Parameter members: the event, its parameters and options, as JSON without braces.
    func subscribe(_ id: String, _ members: String) throws {
        let answer = try ask("subscribe", id: id, members)
        try #require(answer.op == "ok", "\(members): \(answer)")
    }

    /// Sends a request, and returns its responses and the reason of its end.
    func request(_ members: String) throws -> (responses: [Frame], reason: String?) {
        let answer = try ask("request", members)
        let id = try #require(answer.op == "ok" ? answer.id : nil, "\(members): \(answer)")
        var responses: [Frame] = []
        while true {
            let frame = try next(of: id)
            if frame.op == "done" { return (responses, frame["reason"]) }
            responses.append(frame)
        }
    }
}

extension GatewayProcess {
    func frameClient(
        _ target: String = "",
        receiveBuffer: Int32? = nil,
        headers: [(String, String)] = []
    ) throws -> FrameClient {
        let isBare = target.isEmpty || target.hasPrefix("?")
        return try FrameClient(
            port: port,
            path: "/v1/ws" + (isBare ? target : "/" + target),
            receiveBuffer: receiveBuffer,
            headers: headers
        )
    }

    /// Opens an event stream, and returns when its subscription is active.
    func eventStream(_ target: String, headers: [(String, String)] = []) throws -> EventStreamClient {
        let client = try EventStreamClient(port: port, path: "/v1/sse/" + target, headers: headers)
        let first = try client.next()
        try #require(
            first?.name == "ok" && first?.json["op"] as? String == "ok",
            "\(client.head) \(first?.text ?? "")"
        )
        return client
    }

    /// The gateway's source id.
    func identityId() throws -> String {
        let info = try request("GET", "/v1/info").json
        return try #require((info?["identity"] as? [String: Any])?["objectId"] as? String)
    }
}

extension String {
    /// The string as a value in a query.
    var percentEncoded: String {
        addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }
}
