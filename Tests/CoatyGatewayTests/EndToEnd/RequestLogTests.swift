import Foundation
import TestSupport
import Testing

/// The request log of a gateway.
@Suite(.exclusive) struct RequestLogTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let traceparent = ("traceparent", "00-\(trace)-00f067aa0ba902b7-01")
    private static let body = #"{"object":\#(Scene.job("a"))}"#

    private static func requests(_ gateway: GatewayProcess) throws -> [LogEntry] {
        try gateway.entries().filter { $0.label == "requests" }
    }

    @Test func allRequestsAreLoggedWithFields() throws {
        let file = AccessFile(tokens: [.init("ann", "admin")])
        let scene = try AccessScene(file, ["--log-format", "json", "--request-log", "all"])
        let headers = AccessScene.headers("ann") + [("X-Request-Id", "order-7"), Self.traceparent]
        let answer = try scene.gateway.post("/v1/channel/secret-channel", Self.body, headers: headers)
        #expect(answer.headers["x-request-id"] == "order-7")
        let entry = try scene.gateway.request("request POST /v1/channel/{channelId} 202")
        #expect(entry["id"] == "order-7" && entry["trace"] == Self.trace)
        #expect(entry["method"] == "POST" && entry["route"] == "/v1/channel/{channelId}")
        #expect(entry.json["status"] as? Int == 202 && entry.json["bytes"] as? Int == answer.body.count)
        #expect(entry["principal"] == "ann" && entry["address"] == "127.0.0.1" && entry.level == "info")
        let milliseconds = try #require(entry.json["ms"] as? Double)
        #expect((0..<10_000).contains(milliseconds))
        // Without an id in the request, the gateway creates one, and equal requests are not combined.
        for _ in 0..<20 {
            let id = try #require(try scene.get("/v1/info", as: "ann").headers["x-request-id"])
            _ = try scene.gateway.request("request GET /v1/info 200", id: id)
        }
        let refused = try scene.get("/v1/info", as: nil)
        let id = try #require(refused.headers["x-request-id"])
        let unknown = try scene.gateway.request("request GET /v1/info 401", id: id)
        #expect(unknown["principal"] == nil && unknown["address"] == "127.0.0.1")
        _ = try scene.gateway.request("request GET /readyz 200")
        // The log has no paths, because they contain data of clients.
        #expect(!scene.gateway.log.contains("secret-channel"))
    }

    @Test func onlyServerErrorsAndSlowRequestsAreLoggedByDefault() throws {
        let scene = try Scene(["--log-format", "json", "--slow-request", "50"])
        let gateway = scene.gateway
        #expect(try gateway.post("/v1/channel/c", Self.body).headers["x-request-id"] == nil)
        #expect(try gateway.request("GET", "/nothing").headers["x-request-id"]?.count == 16)
        // Waiting for responses of agents does not make a request slow.
        #expect(try gateway.post("/v1/discover?timeout=200", #"{"objectTypes":["x"]}"#).status == 200)
        let connection = try RawConnection(port: gateway.port)
        try connection.send(
            "POST /v1/channel/c HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(Self.body.utf8.count)\r\n\r\n"
        )
        usleep(100_000)
        try connection.send(Self.body)
        #expect(try connection.readResponse().status == 202)
        let slow = try gateway.request("request POST /v1/channel/{channelId} 202")
        #expect(slow.json["slow"] as? Bool == true && slow.level == "notice")
        #expect(slow.json["ms"] as? Double ?? 0 >= 50)
        for _ in 0..<20 {
            #expect(try gateway.post("/v1/call/nobody?timeout=1&min=1", #"{"parameters":{}}"#).status == 504)
        }
        try gateway.stop()
        let failures = try Self.requests(gateway).filter {
            $0.message.hasPrefix("request POST /v1/call/{operation} 504")
        }
        #expect(failures.first?.level == "warning" && failures.first?["id"]?.count == 16)
        #expect(failures.count == 9, "eight, and their count: \(failures.count)")
        #expect(failures.last?.json["repeated"] as? Int == 12)
        #expect(try Self.requests(gateway).count == 10, "\(gateway.log)")
    }

    @Test func selectionChangesWithAReload() throws {
        let file = AccessFile(tokens: [.init("operator", "admin")])
        let scene = try AccessScene(file, ["--log-format", "json"])
        func reload(_ settings: String) throws -> String {
            try (file.yaml + settings).write(toFile: scene.path, atomically: false, encoding: .utf8)
            return try scene.post("/v1/admin/reload", "", as: "operator").text
        }
        #expect(try scene.get("/nothing", as: "operator").status == 404)
        #expect(
            try reload("request-log: errors\nslow-request: 5000\n") == #"{"changed":["request-log","slow-request"]}"#
        )
        let answer = try scene.get("/nothing", as: "operator")
        _ = try scene.gateway.request("request GET - 404", id: answer.headers["x-request-id"] ?? "")
        #expect(try reload("request-log: none\n").contains("request-log"))
        #expect(try scene.get("/nothing", as: "operator").headers["x-request-id"]?.count == 16)
        try scene.gateway.stop()
        #expect(try Self.requests(scene.gateway).count == 1)
    }

    /// Log lines that a request causes contain its ids.
    @Test func logLinesContainRequestIds() throws {
        let file = AccessFile(tokens: [.init("ann", "admin")])
        let scene = try AccessScene(file, ["--log-format", "json"])
        let wrong = [("Authorization", "Bearer wrong-token"), ("X-Request-Id", "id-1"), Self.traceparent]
        #expect(try scene.gateway.request("GET", "/v1/info", headers: wrong).status == 401)
        let failure = try scene.gateway.entry("the failure is logged") { $0.message == "authentication failed" }
        #expect(failure["id"] == "id-1" && failure["trace"] == Self.trace && failure.label == "access")
        // This includes log lines of tasks.
        let headers = AccessScene.headers("ann") + [("X-Request-Id", "id-2")]
        #expect(try scene.gateway.request("POST", "/v1/admin/reload", headers: headers).status == 200)
        let reload = try scene.gateway.entry("the reload is logged") { $0.message == "configuration reloaded" }
        #expect(reload["id"] == "id-2" && reload["trace"] == nil)
    }

    @Test func webSocketsAndFrameErrorsAreLogged() throws {
        let file = AccessFile(
            tokens: [.init("ann", "admin"), .init("bob", "none")],
            roles: ["none": ["{read: [info]}"]]
        )
        let scene = try AccessScene(file, ["--log-format", "json", "--request-log", "all"])
        let headers = AccessScene.headers("bob") + [("X-Request-Id", "socket-1"), Self.traceparent]
        let client = try scene.gateway.frameClient("", headers: headers)
        #expect(try client.ask("subscribe", id: "s\u{202E}", #""event":"channel","channelId":"c""#).op == "error")
        let denied = try scene.gateway.request("frame subscribe 403")
        #expect(denied["id"] == "socket-1" && denied["trace"] == Self.trace && denied["frame"] == "s\u{202E}")
        #expect(denied["principal"] == "bob" && denied["route"] == "/v1/ws" && denied.json["status"] as? Int == 403)
        try client.send("no JSON")
        _ = try client.next("the error") { $0.op == "error" }
        #expect(try scene.gateway.request("frame - 400")["op"] == "")
        #expect(try client.ask("ping").op == "pong")
        try client.socket.sendClose(code: 1000)
        _ = try client.closeCode()
        let end = try scene.gateway.request("WebSocket /v1/ws 1000")
        #expect(end["id"] == "socket-1" && end["principal"] == "bob" && end.json["code"] as? Int == 1000)
        #expect(end.json["bytes"] as? Int ?? 0 > 0 && end.json["received"] as? Int ?? 0 > 0)
        #expect(end.json["ms"] as? Double ?? -1 >= 0)
        // A stream with one subscription, and a refused handshake.
        let stream = try scene.gateway.frameClient("channel?channelId=c", headers: AccessScene.headers("ann"))
        _ = try stream.next("ok") { $0.op == "ok" }
        try stream.socket.sendClose(code: 1000)
        _ = try stream.closeCode()
        #expect(try scene.gateway.request("WebSocket /v1/ws/{event} 1000")["principal"] == "ann")
        do {
            _ = try scene.gateway.frameClient("channel?channelId=c", headers: AccessScene.headers("bob"))
            Issue.record("the handshake was not refused")
        } catch WebSocketClient.Failure.refused(let response) {
            let id = try #require(response.headers["x-request-id"])
            _ = try scene.gateway.request("request GET /v1/ws/{event} 403", id: id)
        }
    }

    /// Subscriptions that end with an error are logged, too.
    @Test func failedSubscriptionsAreLogged() throws {
        let file = AccessFile(
            tokens: [.init("ann", "some")],
            roles: ["some": ["{observe: [channel], channels: ['*']}"]]
        )
        let scene = try AccessScene(file, ["--log-format", "json", "--request-log", "errors"])
        let client = try scene.socket(as: "ann")
        #expect(try client.ask("subscribe", id: "s", #""event":"channel","channelId":"c""#).op == "ok")
        try AccessFile(tokens: [.init("ann", "some")], roles: ["some": ["{read: [info]}"]]).yaml
            .write(toFile: scene.path, atomically: false, encoding: .utf8)
        scene.gateway.signal(SIGHUP)
        #expect(try client.next(of: "s", "error").json["status"] as? Int == 403)
        #expect(try scene.gateway.request("frame subscribe 403")["frame"] == "s")
    }
}
