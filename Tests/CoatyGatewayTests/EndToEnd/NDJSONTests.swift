import Foundation
import TestSupport
import Testing

/// Responses that are streamed as they arrive.
@Suite(.exclusive) struct NDJSONTests {
    private static let ndjson = "application/x-ndjson"

    /// Reads the stream to its end, and returns its lines.
    private func lines(_ client: RawConnection) throws -> [[String: Any]] {
        var text: [UInt8] = []
        while case let chunk = try client.readChunk(within: 30), !chunk.isEmpty { text += chunk }
        #expect(text.last == UInt8(ascii: "\n"))
        return try text.split(separator: UInt8(ascii: "\n")).map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
        }
    }

    @Test func writesEachResponseOnArrival() throws {
        let scene = try Scene()
        let question = try Question(
            scene,
            "/v1/call/op?limit=2&timeout=20000",
            "{}",
            accept: Self.ndjson,
            topic: "/CLL:op/"
        )
        let head = try question.client.readHead()
        #expect(head.status == 200 && head.headers["content-type"] == Self.ndjson)
        try question.answer("RTN", from: "a", "{\r\n  \"result\":\n\"x\\ny\"}")
        let first = String(decoding: try question.client.readChunk(), as: UTF8.self)
        #expect(first.hasPrefix(#"{"op":"response","event":"return","sourceId":"a","ms":"#))
        #expect(first.hasSuffix("\"data\":{    \"result\": \"x\\ny\"}}\n"))
        try question.answer("RTN", from: "b", #"{"error":{"code":1,"message":"m"}}"#)
        let rest = try lines(question.client)
        #expect(rest.map { $0["op"] as? String } == ["response", "done"])
        #expect(rest[0]["sourceId"] as? String == "b")
        #expect(try #require(rest[0]["ms"] as? Int) >= 0)
        #expect(rest[1]["reason"] as? String == "limit")
        // The connection stays open.
        let next = try question.client.request("GET", "/healthz")
        #expect(next.status == 200)
    }

    @Test func lastLineNamesTheReason() throws {
        let scene = try Scene()
        let late = try Question(scene, "/v1/call/op?timeout=50", "{}", accept: Self.ndjson, topic: "/CLL:op/")
        #expect(try late.client.readHead().status == 200)
        #expect(try lines(late.client).map { $0["reason"] as? String } == ["timeout"])

        let target = "/v1/query?limit=0&timeout=20000&until=[%22name%22,[%22Exists%22]]"
        let awaited = try Question(scene, target, #"{"coreTypes":["Task"]}"#, accept: Self.ndjson, topic: "/QRY/")
        try awaited.answer("RTV", from: "a", #"{"objects":[]}"#)
        try awaited.answer("RTV", from: "a", #"{"objects":[\#(Scene.job("a"))]}"#)
        #expect(try awaited.client.readHead().status == 200)
        #expect(try lines(awaited.client).map { $0["reason"] as? String } == [nil, nil, "until"])

        let lost = try Question(scene, "/v1/call/op?timeout=30000", "{}", accept: Self.ndjson, topic: "/CLL:op/")
        #expect(try lost.client.readHead().status == 200)
        scene.broker.kill()
        #expect(try lines(lost.client).map { $0["reason"] as? String } == ["offline"])

        try waitUntil("the broker is away") { try scene.gateway.request("GET", "/readyz").status == 503 }
        let headers = [("Content-Type", "application/json"), ("Accept", Self.ndjson)]
        let offline = try scene.gateway.request("POST", "/v1/call/op", headers: headers, body: "{}")
        #expect(offline.status == 503 && offline.problem == "broker-unavailable")
        #expect(offline.headers["retry-after"] != nil)
    }

    @Test(arguments: [
        ("application/x-ndjson", true), ("text/html, Application/X-NDJSON;q=0.1, */*", true),
        ("application/json, application/x-ndjson", true), ("application/json;q=0.5,application/x-ndjson;q=0.9", true),
        ("application/x-ndjson ; q=0.5, application/json", false), ("application/x-ndjson;q=0", false),
        ("application/x-ndjson;q=x", false), ("*/*", false), ("application/json", false), ("application/*", false),
        ("", false),
    ])
    func formatIsSelectedByTheAcceptHeader(_ accept: String, isStream: Bool) throws {
        let scene = try Scene()
        let response = try scene.gateway.request(
            "POST",
            "/v1/discover?timeout=1",
            headers: [("Content-Type", "application/json"), ("Accept", accept)],
            body: #"{"objectId":"x"}"#
        )
        #expect(response.headers["content-type"] == (isStream ? Self.ndjson : "application/json"))
    }

    @Test func responsesAreQueuedForSlowReader() throws {
        let scene = try Scene()
        let question = try flooded(scene, responses: 8)
        #expect(try question.client.readHead().status == 200)
        let all = try lines(question.client)
        #expect(all.count == 9 && all.last?["reason"] as? String == "until")
    }

    @Test func overflowEndsTheResponse() throws {
        let scene = try Scene()
        let question = try flooded(scene, responses: 40)
        #expect(try question.client.readHead().status == 200)
        let all = try lines(question.client)
        #expect(all.last?["reason"] as? String == "overflow")
        #expect(16..<40 ~= all.count, "\(all.count)")
    }

    /// Returns a question with responses of 1 MiB each that the gateway has received. Its client has not begun to read,
    /// and its last response is pending.
    private func flooded(_ scene: Scene, responses: Int) throws -> Question {
        let question = try Question(
            scene,
            "/v1/call/op?limit=0&timeout=30000&until=[%22executionInfo%22,[%22Exists%22]]",
            "{}",
            accept: Self.ndjson,
            topic: "/CLL:op/",
            receiveBuffer: 4096
        )
        let filler = String(repeating: "x", count: 1 << 20)
        for number in 1...responses {
            let info = number == responses ? #","executionInfo":1"# : ""
            try question.answer("RTN", from: "a", #"{"result":"\#(filler)"\#(info)}"#)
        }
        // This question is answered after the others on the same connection.
        let behind = try Question(scene, "/v1/call/op2?timeout=30000", "{}", topic: "/CLL:op2/")
        try behind.answer("RTN", from: "a", #"{"result":1}"#)
        #expect(try behind.client.readResponse(within: 30).status == 200)
        return question
    }
}
