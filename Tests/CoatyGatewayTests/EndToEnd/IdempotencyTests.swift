import Foundation
import TestSupport
import Testing

/// Requests that clients repeat with the same `Idempotency-Key`.
@Suite(.exclusive) struct IdempotencyTests {
    private static let id = "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e"
    private static let object = #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"n"}"#
    private static let event = #"{"object":\#(object)}"#
    private static let replayed = "idempotency-replayed"

    private static func key(_ text: String) -> [(String, String)] { [("Idempotency-Key", text)] }

    /// Returns the number of events on a topic that the gateway has published.
    private func published(_ scene: Scene, _ topic: String) throws -> Int {
        try scene.gateway.untilReceived(by: scene.agent)
        return scene.agent.messages.count { $0.topic.contains(topic) }
    }

    @Test func repeatedPublicationReplaysTheFirstAnswer() throws {
        let scene = try Scene()
        try scene.agent.subscribe("plain/#")
        let gateway = scene.gateway
        let raw = [("Content-Type", "application/octet-stream")]
        let batch = #"[{"event":"channel","channelId":"batch","data":\#(Self.event)},{"event":"nothing"}]"#
        func send(_ path: String, _ body: String) throws -> RawConnection.Response {
            let fields = Self.key("k-\(path)") + (path.contains("raw") ? raw : [("Content-Type", "application/json")])
            return try gateway.request("POST", path, headers: fields, body: body)
        }
        let requests = [
            ("/v1/advertise", Self.event, "/ADV:CoatyObject/", 202),
            ("/v1/deadvertise", #"{"objectIds":["o"]}"#, "/DAD/", 202), ("/v1/channel/c", Self.event, "/CHN:c/", 202),
            ("/v1/raw/plain%2Ft?retain=false", "bytes", "plain/t", 202), ("/v1/batch", batch, "/CHN:batch/", 200),
        ]
        for (path, body, topic, status) in requests {
            let first = try send(path, body)
            #expect(first.status == status && first.headers[Self.replayed] == nil, "\(path): \(first.text)")
            for _ in 0..<3 {
                let again = try send(path, body)
                #expect(again.status == status && again.text == first.text, "\(path)")
                #expect(again.headers[Self.replayed] == "true", "\(path)")
                #expect(again.headers["content-type"] == first.headers["content-type"])
            }
            #expect(try published(scene, topic) == 1, "\(path)")
        }
        // Requests without a key, or with another key, are separate requests.
        #expect(try gateway.post("/v1/channel/c", Self.event).headers[Self.replayed] == nil)
        #expect(try gateway.post("/v1/channel/c", Self.event, headers: Self.key("other")).status == 202)
        #expect(try published(scene, "/CHN:c/") == 3)
        let metrics = try gateway.request("GET", "/metrics").text
        #expect(metrics.contains("\ncoaty_gateway_idempotency_replays_total 15\n"))
        #expect(metrics.contains(#"coaty_gateway_resource_used{resource="idempotency_keys"} 6"#))
    }

    @Test func repeatedIoValueIsNotPublishedAgain() throws {
        let scene = try Scene()
        let node = #"{"contextName":"c","name":"n","ioSources":[{"name":"s","valueType":"t"}]}"#
        let registered = try scene.gateway.post("/v1/io/nodes", node)
        let sources = (registered.json?["node"] as? [String: Any])?["ioSources"] as? [[String: Any]]
        let path = "/v1/io/sources/\(try #require(sources?.first?["objectId"] as? String))/values"
        let answers = try (0..<2).map { _ in try scene.gateway.post(path, "21.5", headers: Self.key("k")) }
        #expect(answers.map(\.status) == [202, 202])
        #expect(answers.map { $0.headers[Self.replayed] } == [nil, "true"])
        let other = try scene.gateway.post(path, "22", headers: Self.key("k"))
        #expect(other.status == 422 && other.problem == "idempotency-key-reused")
    }

    @Test func anotherRequestWithTheKeyIsRefused() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        try scene.agent.subscribe("plain/#")
        let fields = Self.key("k") + [("Content-Type", "application/octet-stream")]
        func send(_ target: String, _ body: String) throws -> RawConnection.Response {
            try gateway.request("POST", target, headers: fields, body: body)
        }
        #expect(try send("/v1/raw/plain%2Fc?retain=false", "bytes").status == 202)
        for (target, body) in [
            ("/v1/raw/plain%2Fc?retain=false", "byte"), ("/v1/raw/plain%2Fc?retain=true", "bytes"),
            ("/v1/raw/plain%2Fc", "bytes"), ("/v1/raw/plain%2Fd?retain=false", "bytes"), ("/v1/channel/c", "bytes"),
        ] {
            let other = try send(target, body)
            #expect(other.status == 422 && other.problem == "idempotency-key-reused", "\(target): \(other.text)")
        }
        #expect(try published(scene, "plain/c") == 1)
        #expect(try published(scene, "plain/d") == 0)
        // A cache or a proxy may add parameters to a repeated request.
        let repeated = try send("/v1/raw/plain%2Fc?retain=false&_=7&utm_source=mail", "bytes")
        #expect(repeated.headers[Self.replayed] == "true", "\(repeated.text)")
    }

    @Test func invalidKeysAreRefused() throws {
        let scene = try Scene()
        for key in ["", String(repeating: "k", count: 256), "a b", "schlüssel"] {
            let refused = try scene.gateway.post("/v1/channel/c", Self.event, headers: Self.key(key))
            #expect(refused.status == 400 && refused.problem == "invalid-parameter", "\(key): \(refused.text)")
            #expect(refused.json?["parameter"] as? String == "Idempotency-Key")
        }
        let longest = Self.key(String(repeating: "k", count: 255))
        #expect(try scene.gateway.post("/v1/channel/c", Self.event, headers: longest).status == 202)
        let lines = Self.key("k") + [("Accept", "application/x-ndjson")]
        let refused = try scene.gateway.post("/v1/call/op?timeout=50", "{}", headers: lines)
        #expect(refused.status == 400 && refused.problem == "invalid-parameter", "\(refused.text)")
        #expect(try published(scene, "/CLL:op/") == 0)
        #expect(try published(scene, "/CHN:c/") == 1)
    }

    @Test func repeatedCallIsRefusedWhilePendingThenReplayed() throws {
        let scene = try Scene()
        let target = "/v1/call/op?limit=1&timeout=30000"
        let question = try Question(scene, target, "{}", headers: Self.key("k"), topic: "/CLL:op/")
        let early = try scene.gateway.post(target, "{}", headers: Self.key("k"))
        #expect(early.status == 409 && early.problem == "request-in-progress", "\(early.text)")
        #expect(early.headers["retry-after"] == "1")
        try question.answer("RTN", from: "lamp", #"{"result":[1,2,3]}"#)
        let first = try question.client.readResponse()
        #expect(first.status == 200 && first.text.contains("[1,2,3]") && first.headers[Self.replayed] == nil)
        let again = try scene.gateway.post(target, "{}", headers: Self.key("k"))
        #expect(again.status == 200 && again.text == first.text && again.headers[Self.replayed] == "true")
        #expect(try published(scene, "/CLL:op/") == 1)
    }

    @Test func missingAnswerIsReplayed() throws {
        let scene = try Scene()
        let job = #"{"object":\#(Scene.job("a"))}"#
        let first = try scene.gateway.post("/v1/update?timeout=50&min=1", job, headers: Self.key("k"))
        #expect(first.status == 504 && first.headers[Self.replayed] == nil)
        let again = try scene.gateway.post("/v1/update?timeout=50&min=1", job, headers: Self.key("k"))
        #expect(again.status == 504 && again.text == first.text && again.headers[Self.replayed] == "true")
        #expect(try published(scene, "/UPD:Task/") == 1)
    }

    @Test func failuresAfterPublicationAreReplayed() throws {
        let scene = try Scene()
        let target = "/v1/call/op?timeout=30000"
        func send() throws -> RawConnection.Response {
            try scene.gateway.post(target, "{}", headers: Self.key("k"))
        }
        let question = try Question(scene, target, "{}", headers: Self.key("k"), topic: "/CLL:op/")
        scene.broker.kill()
        let first = try question.client.readResponse()
        for (answer, replayed) in [(first, nil), (try send(), "true")] {
            #expect(answer.status == 503 && answer.problem == "broker-unavailable", "\(answer.text)")
            #expect(answer.json?["published"] as? Bool == true && answer.headers["retry-after"] == nil)
            #expect(answer.headers[Self.replayed] == replayed && answer.text == first.text)
        }
        // The problem of an unpublished request has no member `published`, and its key can be used again.
        for _ in 0..<2 {
            let refused = try scene.gateway.post("/v1/call/op", "{}", headers: Self.key("l"))
            #expect(refused.status == 503 && refused.problem == "broker-unavailable")
            #expect(refused.json?["published"] == nil && refused.headers["retry-after"] != nil)
            #expect(refused.headers[Self.replayed] == nil)
        }
    }

    @Test func revocationDuringPublishedCallIsReplayed() throws {
        var file = AccessFile(tokens: [.init("ann", "user")])
        file.roles = ["user": ["{request: [call], operations: [\"*\"]}"]]
        let scene = try AccessScene(file)
        let headers =
            AccessScene.headers("ann") + Self.key("k") + [("Host", "l"), ("Content-Type", "application/json")]
        let head = headers.map { "\($0): \($1)\r\n" }.joined()
        let connection = try RawConnection(port: scene.gateway.port)
        try connection.send("POST /v1/call/op?timeout=30000 HTTP/1.1\r\n\(head)Content-Length: 2\r\n\r\n{}")
        try waitUntil("the call is published") { scene.agent.messages.contains { $0.topic.contains("/CLL:op/") } }
        let old = file.roles
        file.roles = ["user": ["{read: [info]}"]]
        try scene.reload(file)
        let first = try connection.readResponse()
        #expect(first.status == 403 && first.json?["published"] as? Bool == true, "\(first.text)")
        file.roles = old
        try scene.reload(file)
        let again = try scene.gateway.post(
            "/v1/call/op?timeout=30000",
            "{}",
            headers: AccessScene.headers("ann") + Self.key("k")
        )
        #expect(again.status == 403 && again.text == first.text && again.headers[Self.replayed] == "true")
    }

    @Test func disconnectedClientGetsTheAnswerLater() throws {
        let scene = try Scene()
        let target = "/v1/call/op?limit=1&timeout=30000"
        var question: Question? = try Question(scene, target, "{}", headers: Self.key("k"), topic: "/CLL:op/")
        var other: Question? = try Question(scene, "/v1/call/other?timeout=30000", "{}", topic: "/CLL:other/")
        let correlationId = try #require(question?.request.topic.split(separator: "/").last)
        func pending() throws -> Int? {
            try scene.gateway.request("GET", "/v1/status").json.flatMap {
                ($0["requests"] as? [String: Any])?["pending"] as? Int
            }
        }
        #expect(try pending() == 2)
        withExtendedLifetime((question, other)) {}
        // This closes the connections.
        (question, other) = (nil, nil)
        // A request without a key ends when its client disconnects.
        try waitUntil("the request without a key has ended") { try pending() == 1 }
        #expect(try scene.gateway.post(target, "{}", headers: Self.key("k")).status == 409)
        try scene.agent.publish("coaty/3/-/RTN/lamp/\(correlationId)", #"{"result":7}"#)
        var again: RawConnection.Response?
        try waitUntil("the answer is there") {
            again = try scene.gateway.post(target, "{}", headers: Self.key("k"))
            return again?.status != 409
        }
        #expect(again?.status == 200 && again?.text.contains(#""result":7"#) == true)
        #expect(again?.headers[Self.replayed] == "true")
        #expect(try published(scene, "/CLL:op/") == 1)
    }

    @Test func refusedRequestDoesNotUseItsKey() throws {
        var file = AccessFile(tokens: [.init("ann", "user"), .init("bob", "user"), .init("free", "admin")])
        file.roles = ["user": ["{read: [info]}"]]
        let scene = try AccessScene(file)
        func send(_ name: String, _ path: String = "/v1/channel/c", _ body: String = Self.event) throws
            -> RawConnection.Response
        {
            try scene.gateway.post(path, body, headers: AccessScene.headers(name) + Self.key("k"))
        }
        #expect(try send("ann").status == 403)
        let batch = #"[{"event":"channel","channelId":"c","data":\#(Self.event)}]"#
        #expect(try send("ann", "/v1/batch", batch).text.contains(#""status":403"#))
        file.roles = ["user": ["{publish: [channel], channels: [\"*\"]}"]]
        file.limits = ["roles: {user: {publications: 1/h}}"]
        try scene.reload(file)
        #expect(try send("ann", "/v1/channel/c", "{").status == 400)
        #expect(try scene.post("/v1/admin/pause", "{}", as: "free").status == 200)
        #expect(try send("ann").status == 503)
        #expect(try scene.post("/v1/admin/resume", "{}", as: "free").status == 200)
        // The rate allows only one request.
        let first = try send("ann")
        #expect(first.status == 202 && first.headers[Self.replayed] == nil)
        #expect(try send("ann").headers[Self.replayed] == "true")
        let limited = AccessScene.headers("ann") + Self.key("l")
        #expect(try scene.gateway.post("/v1/channel/c", Self.event, headers: limited).status == 429)
        // Each client has a separate set of keys.
        let other = try send("bob")
        #expect(other.status == 202 && other.headers[Self.replayed] == nil)
        file.limits = []
        try scene.reload(file)
        let later = try scene.gateway.post("/v1/channel/c", Self.event, headers: limited)
        #expect(later.status == 202 && later.headers[Self.replayed] == nil)
        #expect(try scene.gateway.post("/v1/channel/c", Self.event, headers: Self.key("k")).status == 401)
        try waitUntil("all arrive") { scene.agent.messages.count { $0.topic.contains("/CHN:c/") } >= 3 }
        #expect(scene.agent.messages.count { $0.topic.contains("/CHN:c/") } == 3)
    }

    @Test func keysAreBounded() throws {
        let scene = try Scene(["--limit", "maximum-idempotency-keys-per-client=2"])
        func send(_ key: String) throws -> RawConnection.Response {
            try scene.gateway.post("/v1/channel/c", Self.event, headers: Self.key(key))
        }
        for key in ["1", "2"] { #expect(try send(key).status == 202) }
        let refused = try send("3")
        #expect(refused.status == 429 && refused.problem == "too-many-idempotency-keys", "\(refused.text)")
        #expect(try #require(refused.headers["retry-after"].flatMap { Int($0) }) > 500)
        // No earlier key was removed for it.
        for key in ["1", "2"] { #expect(try send(key).headers[Self.replayed] == "true") }
        #expect(try scene.gateway.post("/v1/channel/c", Self.event).status == 202)
        #expect(try published(scene, "/CHN:c/") == 3)
    }

    @Test func allowedOriginsMaySendKeys() throws {
        let origin = "https://app.example.com"
        let scene = try Scene(["--allowed-origins", origin])
        let preflight = try scene.gateway.request(
            "OPTIONS",
            "/v1/channel/c",
            headers: [
                ("Origin", origin), ("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", "content-type,idempotency-key"),
            ]
        )
        #expect(preflight.headers["access-control-allow-headers"]?.contains("Idempotency-Key") == true)
        let fields = Self.key("k") + [("Origin", origin)]
        #expect(try scene.gateway.post("/v1/channel/c", Self.event, headers: fields).status == 202)
        let again = try scene.gateway.post("/v1/channel/c", Self.event, headers: fields)
        #expect(again.headers["access-control-allow-origin"] == origin && again.headers[Self.replayed] == "true")
        #expect(again.headers["access-control-expose-headers"]?.contains("Idempotency-Replayed") == true)
    }
}
