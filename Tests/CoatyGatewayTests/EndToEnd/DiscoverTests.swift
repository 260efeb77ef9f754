import Foundation
import TestSupport
import Testing

@Suite(.exclusive) struct DiscoverTests {
    private func responses(_ response: RawConnection.Response) throws -> [[String: Any]] {
        try #require(response.json?["responses"] as? [[String: Any]], "\(response.text)")
    }

    @Test func collectsUntilTheTimeout() throws {
        let scene = try Scene()
        let response = try scene.gateway.post("/v1/discover?limit=0&timeout=300", #"{"coreTypes":["Identity"]}"#)
        #expect(response.status == 200)
        #expect(response.json?["reason"] as? String == "timeout")
        let own = try #require(try responses(response).first)
        let info = try scene.gateway.request("GET", "/v1/info").json
        #expect(own["sourceId"] as? String == (info?["identity"] as? [String: Any])?["objectId"] as? String)

        let nobody = try scene.gateway.post("/v1/discover?timeout=100", #"{"objectTypes":["com.example.None"]}"#)
        #expect(try responses(nobody).isEmpty)
        #expect(nobody.json?["reason"] as? String == "timeout")
    }

    @Test func endsAtTheLimitIgnoringTheGatewayIdentity() throws {
        let scene = try Scene()
        let client = try RawConnection(port: scene.gateway.port)
        let body = #"{"coreTypes":["Identity"]}"#
        let head = "POST /v1/discover?limit=2&timeout=20000 HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
        try client.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        let request = try scene.agent.waitFor { $0.asks(body) }
        #expect(request.text == body)
        let correlationId = try #require(request.topic.split(separator: "/").last)
        let identity = { (id: String) in
            #"{"object":{"coreType":"Identity","objectType":"coaty.Identity","objectId":"\#(id)","name":"n"}}"#
        }
        // Wait for the gateway's own response, to check that it does not count.
        _ = try scene.agent.waitFor { $0.topic.contains("/RSV/") && $0.topic.hasSuffix("/\(correlationId)") }
        try scene.agent.publish("coaty/3/-/RSV/agent-1/\(correlationId)", identity("agent-1"))
        try scene.agent.publish("coaty/3/-/RSV/misfit/\(correlationId)", #"{"object":\#(Scene.job("wrong type"))}"#)
        try scene.agent.publish("coaty/3/-/RSV/invalid/\(correlationId)", "{}")
        try scene.agent.publish("coaty/3/-/RSV/agent \"2\"/\(correlationId)", identity("agent-2"))
        let response = try client.readResponse()
        #expect(response.json?["reason"] as? String == "limit")
        let sources = try responses(response).map { $0["sourceId"] as? String }
        #expect(sources.count == 3)
        #expect(sources.suffix(2) == ["agent-1", "agent \"2\""])
        for answer in try responses(response) { #expect(try #require(answer["ms"] as? Int) >= 0) }
    }

    @Test func refusesBadParameters() throws {
        let scene = try Scene()
        for query in [
            "limit=-1", "limit=x", "limit=", "limit=+1", "limit=1&limit=2", "timeout=0", "timeout=60001", "timeout=1e3",
            "limit=99999999999999999999",
        ] {
            let response = try scene.gateway.post("/v1/discover?\(query)", #"{"coreTypes":["Identity"]}"#)
            #expect(response.status == 400 && response.problem == "invalid-parameter", "\(query)")
            #expect(response.json?["parameter"] as? String == String(query.prefix { $0 != "=" }), "\(query)")
        }
    }

    @Test func manyRequestsArePendingAtOnce() throws {
        let scene = try Scene()
        let clients = try (0..<100).map { _ in try RawConnection(port: scene.gateway.port) }
        let body = #"{"objectTypes":["com.example.Slow"]}"#
        for client in clients {
            let head = "POST /v1/discover?timeout=20000 HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
            try client.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        }
        try waitUntil("all are asked") { scene.agent.messages.filter { $0.asks(body) }.count == 100 }
        // One-way requests overtake requests that wait for responses.
        #expect(try scene.gateway.post("/v1/deadvertise", #"{"objectIds":["x"]}"#).status == 202)
        for request in scene.agent.messages where request.asks(body) {
            let correlationId = try #require(request.topic.split(separator: "/").last)
            let object = Scene.job("answer", objectType: "com.example.Slow")
            try scene.agent.publish("coaty/3/-/RSV/slow/\(correlationId)", #"{"object":\#(object)}"#)
        }
        for client in clients { #expect(try client.readResponse().json?["reason"] as? String == "limit") }
    }
}
