import Foundation
import TestSupport
import Testing

/// Clients that exceed the rates of their roles.
@Suite(.exclusive, .frameChecks) struct RateLimitTests {
    private static let roles = [
        "user": [
            "{publish: [channel], channels: [\"*\"]}", "{observe: [channel], channels: [\"*\"]}",
            "{request: [call], operations: [\"*\"]}", "{read: [info, status]}",
            "{read: [objects], types: [\"*\"]}",
        ]
    ]
    private static let id = "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e"
    private static let event = #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"n"}}"#

    /// Returns a configuration with rates.
    ///
    /// - Parameters:
    ///   - rates: the rates of the role `user`, in one line of YAML.
    ///   - anonymous: the rates of clients without a token.
    private static func file(_ rates: String, anonymous: String? = nil) -> AccessFile {
        var file = AccessFile(
            tokens: [.init("ann", "user"), .init("bob", "user"), .init("free", "admin")],
            anonymous: ["user"],
            roles: roles
        )
        file.limits = ["roles: {user: {\(rates)}}"]
        if let anonymous { file.limits.append("anonymous: {\(anonymous)}") }
        return file
    }

    private func metric(_ limit: String, _ scene: AccessScene) throws -> String? {
        let name = #"coaty_gateway_limits_reached_total{limit="\#(limit)",scope="own"} "#
        return try scene.get("/metrics", as: "free").text.split(separator: "\n").first { $0.hasPrefix(name) }
            .map { String($0.dropFirst(name.count)) }
    }

    @Test func limitedRequestsGet429AndRetryAfter() throws {
        let scene = try AccessScene(Self.file("requests: 3/h burst 3", anonymous: "requests: 1/h"))
        for _ in 0..<3 { #expect(try scene.get("/v1/info", as: "ann").status == 200) }
        let answer = try scene.get("/v1/info", as: "ann")
        #expect(answer.status == 429)
        #expect(answer.json?["type"] as? String == "urn:coaty-gateway:problem:rate-limited")
        #expect(answer.headers["ratelimit-policy"] == #""requests";q=3;w=3600"#)
        let wait = try #require(answer.headers["retry-after"].flatMap { Int($0) })
        #expect((1100...1200).contains(wait) && answer.headers["ratelimit"] == #""requests";r=0;t=\#(wait)"#)
        let milliseconds = try #require(answer.json?["retryAfter"] as? Int)
        #expect((milliseconds + 999) / 1000 == wait)
        // The gateway refuses the request without reading its body.
        #expect(try scene.post("/v1/channel/c", Self.event, as: "ann").status == 429)
        // Other clients and public paths are not affected.
        #expect(try scene.get("/v1/info", as: "bob").status == 200)
        for _ in 0..<9 { #expect(try scene.get("/v1/info", as: "free").status == 200) }
        #expect(try scene.get("/v1/info", as: nil).status == 200)
        #expect(try scene.get("/v1/info", as: nil).status == 429)
        #expect(try scene.get("/healthz", as: "ann").status == 200)
        #expect(try metric("rate_of_requests", scene) == "3")
        try waitUntil("the refusal is logged") {
            scene.gateway.log.contains("refused a request: the client has used up its share")
        }
        #expect(throws: (any Error).self) { _ = try scene.socket(as: "ann") }
    }

    @Test func addressIsLimitedBeforeAuthentication() throws {
        var file = Self.file("requests: 1000/s")
        file.limits.append("address: {requests: 5/h burst 5}")
        let scene = try AccessScene(file)
        let wrong = [("Authorization", "Bearer wrong-token-0123456789")]
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        let client = try scene.socket(as: "bob")
        #expect(try scene.get("/v1/info", as: nil).status == 200)
        for _ in 0..<2 { #expect(try scene.gateway.request("GET", "/v1/info", headers: wrong).status == 401) }
        for headers in [wrong, [], AccessScene.headers("ann"), AccessScene.headers("free")] {
            let answer = try scene.gateway.request("GET", "/v1/info", headers: headers)
            #expect(answer.status == 429 && answer.json?["type"] as? String == "urn:coaty-gateway:problem:rate-limited")
            #expect(answer.headers["ratelimit-policy"] == #""requests";q=5;w=3600"#)
            #expect(answer.headers["retry-after"] != nil)
        }
        #expect(throws: (any Error).self) { _ = try scene.socket(as: "ann") }
        // Open connections and public paths are not affected.
        #expect(try client.ask("ping").op == "pong")
        #expect(try scene.gateway.request("GET", "/healthz", headers: wrong).status == 200)
        try scene.reload(Self.file("requests: 1000/s"))
        #expect(try metric("rate_of_address", scene) == "5")
    }

    @Test func bucketRefillsOverTime() throws {
        let scene = try AccessScene(Self.file("requests: 5/s burst 1"))
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        var refused = 0
        try waitUntil("the next is served") {
            let answer = try scene.get("/v1/info", as: "ann")
            if answer.status == 429 { refused += 1 }
            return answer.status == 200
        }
        #expect(refused > 0)
    }

    @Test func publicationsAndSubscriptionsAreCountedOverAllTransports() throws {
        let scene = try AccessScene(Self.file("publications: 3/h burst 3, subscriptions: 2/h burst 2"))
        let client = try scene.socket(as: "ann")
        let publication = #""event":"channel","channelId":"c","data":\#(Self.event)"#
        #expect(try client.ask("publish", publication).op == "ok")
        let batch = try scene.post(
            "/v1/batch",
            "[\(Array(repeating: "{\(publication)}", count: 3).joined(separator: ","))]",
            as: "ann"
        )
        let results = try #require(batch.json?["results"] as? [[String: Any]])
        #expect(results.map { $0["status"] as? Int } == [202, 202, 429])
        let refused = try client.ask("publish", publication)
        #expect(refused.op == "error" && refused["type"] == "urn:coaty-gateway:problem:rate-limited")
        #expect((1_100_000...1_200_000).contains(try #require(refused.json["retryAfter"] as? Int)))
        try waitUntil("what was accepted arrives") { scene.agent.messages.count { $0.topic.contains("/CHN:c/") } >= 3 }
        #expect(scene.agent.messages.count { $0.topic.contains("/CHN:c/") } == 3)
        // Refused requests do not use up the rate.
        #expect(
            try client.ask("subscribe", id: "x", #""event":"advertise","objectType":"t""#).json["status"] as? Int == 403
        )
        try client.subscribe("s1", #""event":"channel","channelId":"c""#)
        try client.subscribe("s2", #""event":"channel","channelId":"c""#)
        #expect(
            try client.ask("subscribe", id: "s3", #""event":"channel","channelId":"c""#).json["status"] as? Int == 429
        )
        #expect(try scene.get("/v1/sse/channel?channelId=c", as: "ann").status == 429)
        #expect(try client.ask("unsubscribe", id: "s1").op == "ok")
        #expect(try metric("rate_of_publications", scene) == "2")
        #expect(try metric("rate_of_subscriptions", scene) == "2")
    }

    @Test func framesCountAsRequests() throws {
        let scene = try AccessScene(Self.file("requests: 4/h burst 4"))
        let client = try scene.socket(as: "ann")
        try client.subscribe("s", #""event":"channel","channelId":"c""#)
        for _ in 0..<2 { #expect(try client.ask("ping").op == "pong") }
        let refused = try client.ask("ping")
        #expect(refused.op == "error" && refused.json["retryAfter"] as? Int ?? 0 > 0)
        // Events are still delivered, and subscriptions can be ended.
        try scene.publish("CHN:c", Self.event)
        #expect(try client.next(of: "s").objectName == "n")
        #expect(try client.ask("unsubscribe", id: "s").op == "ok")
        #expect(try scene.get("/v1/info", as: "ann").status == 429)
    }

    @Test func largePublicationDelaysLaterOnes() throws {
        let scene = try AccessScene(Self.file("bytes-in: 2kB/h burst 1kB"))
        let large =
            #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"\#(Self.id)","name":"\#(String(repeating: "n", count: 1000))"}}"#
        let client = try scene.socket(as: "ann")
        #expect(try scene.post("/v1/channel/c", large, as: "ann").status == 202)
        let answer = try scene.post("/v1/channel/c", Self.event, as: "ann")
        #expect(answer.status == 429)
        #expect(answer.headers["ratelimit-policy"] == #""bytes-in";q=1000;w=1800;qu="content-bytes""#)
        #expect(try client.ask("ping").json["status"] as? Int == 429)
        // Requests without a body are not affected.
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        #expect(try scene.post("/v1/channel/c", Self.event, as: "bob").status == 202)
    }

    // MARK: - Bytes out

    /// Publishes events that are slightly larger than 1,000 bytes.
    private func publish(_ numbers: Range<Int>, _ scene: AccessScene) throws {
        let filler = String(repeating: "x", count: 1000)
        for number in numbers {
            let object =
                #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(Self.id)","name":"n","number":\#(number),"filler":"\#(filler)"}"#
            try scene.publish("CHN:c", #"{"object":\#(object)}"#)
        }
    }

    @Test func responsesAreChargedToTheNextRequest() throws {
        let scene = try AccessScene(Self.file("bytes-out: 2kB/h burst 1kB"))
        let first = try scene.get("/v1/status", as: "ann")
        #expect(first.status == 200 && first.body.count > 1000)
        var answer: RawConnection.Response?
        // A response is charged when it is sent.
        try waitUntil("the response is charged") {
            answer = try scene.get("/v1/info", as: "ann")
            return answer?.status == 429
        }
        #expect(answer?.json?["type"] as? String == "urn:coaty-gateway:problem:rate-limited")
        #expect(answer?.headers["ratelimit-policy"] == #""bytes-out";q=1000;w=1800;qu="content-bytes""#)
        #expect(try scene.post("/v1/channel/c", Self.event, as: "ann").status == 429)
        #expect(try scene.get("/v1/info", as: "bob").status == 200)
        for _ in 0..<3 { #expect(try scene.get("/v1/status", as: "free").status == 200) }
    }

    @Test func eventsBeyondTheRateAreDroppedWithAGap() throws {
        let scene = try AccessScene(Self.file("bytes-out: 10kB/h burst 5kB"))
        let options = #""event":"channel","channelId":"c","buffer":8"#
        let (limited, free) = (try scene.socket(as: "ann"), try scene.socket(as: "free"))
        try limited.subscribe("s", options)
        try free.subscribe("s", options)
        for number in 0..<50 {
            try publish(number..<number + 1, scene)
            #expect(try free.next(of: "s").object["number"] as? Int == number)
        }
        // Only the burst is delivered. Replies are not delayed.
        #expect(try limited.ask("ping").op == "pong")
        let numbers = limited.takeReceived(of: "s").map { $0.object["number"] as? Int }
        #expect((3...6).contains(numbers.count) && numbers == (0..<numbers.count).map { $0 })
        try waitUntil("the wait is counted") { try metric("rate_of_bytes_out", scene) == "1" }
        try waitUntil("the delay is logged") {
            scene.gateway.log.contains("delayed events and responses for a client")
        }
        #expect(!scene.gateway.log.contains("refused a request"))
        // The last events stay queued; a gap replaces the dropped ones.
        try scene.reload(Self.file("requests: 1000/s"))
        let gap = try limited.next(of: "s")
        #expect(gap.op == "gap" && gap.json["dropped"] as? Int == 50 - numbers.count - 8, "\(gap.text)")
        for number in 42..<50 { #expect(try limited.next(of: "s").object["number"] as? Int == number) }
        // Without the rate, events are not delayed.
        try publish(50..<51, scene)
        #expect(try limited.next(of: "s").object["number"] as? Int == 50)
    }

    @Test func streamsAreChargedOnce() throws {
        let scene = try AccessScene(Self.file("bytes-out: 8kB/h burst 8kB"))
        func streams() throws -> Int? {
            let http = try scene.get("/v1/status", as: "free").json?["http"] as? [String: Any]
            return http?["streams"] as? Int
        }
        do {
            let stream = try scene.events("channel?channelId=c", as: "ann")
            try publish(0..<5, scene)
            for _ in 0..<5 { #expect(try stream.next()?.name == "event") }
            withExtendedLifetime(stream) {}
        }
        try waitUntil("the stream has ended") { try streams() == 0 }
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        // A long list is streamed, too.
        let filler = String(repeating: "x", count: 1000)
        for number in 0..<80 {
            let id = "00000000-0000-4000-8000-\(String(format: "%012d", number))"
            try scene.advertise(
                #"{"coreType":"CoatyObject","objectType":"com.example.Lamp","objectId":"\#(id)","name":"\#(filler)"}"#
            )
        }
        try waitUntil("all are listed") { try scene.get("/v1/objects", as: "free").json?["total"] as? Int ?? 0 >= 80 }
        let list = try scene.get("/v1/objects?limit=80&objectType=com.example.Lamp", as: "bob")
        #expect(list.status == 200 && list.body.count > 64 << 10, "\(list.status) \(list.body.count)")
        var requests = 0
        try waitUntil("the list is charged") {
            requests += 1
            return try scene.get("/v1/info", as: "bob").status == 429
        }
        // The responses of these requests alone do not exceed the rate.
        #expect(requests <= 5)
    }

    @Test func eventsAreDelayedByTheRate() throws {
        let scene = try AccessScene(Self.file("bytes-out: 10kB/s burst 1kB"))
        let streams = try scene.events("channel?channelId=c", as: "ann")
        let begin = ContinuousClock.now
        try publish(0..<16, scene)
        for number in 0..<16 {
            let event = try #require(try streams.next())
            let data = (event.json["data"] as? [String: Any])?["object"] as? [String: Any]
            #expect(event.name == "event" && data?["number"] as? Int == number)
        }
        // More than 16 kB at 10 kB per second; the first two events are delivered immediately.
        #expect(ContinuousClock.now - begin > .seconds(1.2))
    }

    @Test func requestsAreServedWhileStreamsWait() throws {
        let scene = try AccessScene(Self.file("bytes-out: 10kB/s burst 1kB"))
        let stream = try scene.events("channel?channelId=c", as: "ann")
        try publish(0..<30, scene)
        _ = try stream.next()
        for _ in 0..<10 { #expect(try scene.get("/v1/info", as: "ann").status == 200) }
        for _ in 1..<30 { #expect(try stream.next()?.name == "event") }
    }

    /// Sends a call that streams its responses as NDJSON, and publishes responses of more than 1,000 bytes each.
    private func call(_ scene: AccessScene, responses: Int) throws -> RawConnection {
        let connection = try RawConnection(port: scene.gateway.port)
        let fields =
            AccessScene.headers("ann") + [
                ("Host", "l"), ("Content-Type", "application/json"), ("Accept", "application/x-ndjson"),
                ("Content-Length", "2"),
            ]
        let head = fields.map { "\($0): \($1)\r\n" }.joined()
        try connection.send("POST /v1/call/op?limit=\(responses)&timeout=30000 HTTP/1.1\r\n\(head)\r\n{}")
        var correlationId: Substring?
        try waitUntil("the call is published") {
            correlationId =
                scene.agent.messages.last { $0.topic.contains("/CLL:op/") }?.topic.split(separator: "/").last
            return correlationId != nil
        }
        let result = #"{"result":"\#(String(repeating: "x", count: 1000))"}"#
        for _ in 0..<responses { try scene.publish("RTN/\(try #require(correlationId))", result) }
        return connection
    }

    @Test func agentResponsesAreDelayedByTheRate() throws {
        let scene = try AccessScene(Self.file("bytes-out: 10kB/s burst 1kB"))
        let begin = ContinuousClock.now
        let response = try call(scene, responses: 16).readResponse(within: 30)
        #expect(response.status == 200 && response.text.split(separator: "\n").count == 17)
        #expect(response.text.hasSuffix(#"{"op":"done","reason":"limit"}"# + "\n"))
        #expect(ContinuousClock.now - begin > .seconds(1.2))
    }

    @Test func aReloadChangesTheRateOfOpenResponses() throws {
        let scene = try AccessScene(Self.file("bytes-out: 1kB/h burst 1kB"))
        let connection = try call(scene, responses: 16)
        try waitUntil("the responses wait") { try metric("rate_of_bytes_out", scene) == "1" }
        try scene.reload(Self.file("requests: 1000/s"))
        let response = try connection.readResponse(within: 10)
        #expect(response.status == 200 && response.text.split(separator: "\n").count == 17)
    }

    @Test func aReloadChangesRatesOfOpenConnections() throws {
        let scene = try AccessScene(Self.file("requests: 2/h burst 2"))
        let client = try scene.socket(as: "ann")
        #expect(try client.ask("ping").op == "pong")
        #expect(try client.ask("ping").op == "error")
        try scene.reload(Self.file("requests: 1000/s"))
        try waitUntil("the new rate applies") { try client.ask("ping").op == "pong" }
        var open = Self.file("requests: 1/h")
        open.limits = []
        try scene.reload(open)
        for _ in 0..<20 { #expect(try client.ask("ping").op == "pong") }
        // Errors contain the line number, and the file is not applied.
        let bad = Self.file("requests: 1/h").yaml.replacing("1/h", with: "fast")
        let line = try #require(bad.split(separator: "\n").firstIndex { $0.contains("fast") }) + 1
        let reason = try scene.reload(bad: bad)
        #expect(reason.contains("\(line)") && reason.contains("must be a rate such as"), "\(reason)")
        #expect(try client.ask("ping").op == "pong")
    }
}
