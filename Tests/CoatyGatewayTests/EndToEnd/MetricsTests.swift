import Foundation
import TestSupport
import Testing

/// `GET /metrics` of a gateway.
@Suite(.exclusive) struct MetricsTests {
    @Test func countsRequestsAndEvents() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let stream = try gateway.stream("channel?channelId=c")
        for _ in 0..<3 {
            let body = #"{"object":\#(Scene.job("a"))}"#
            #expect(try gateway.post("/v1/channel/c", body).status == 202)
            _ = try stream.receiveWithoutCursor()
        }
        #expect(try gateway.post("/v1/channel/c", "{").status == 400)
        #expect(try gateway.request("GET", "/nothing/x").status == 404)
        for (sample, expected) in [
            (#"http_requests_total{route="/v1/channel/{channelId}",method="POST",status="202"}"#, 3.0),
            (#"http_requests_total{route="/v1/channel/{channelId}",method="POST",status="400"}"#, 1),
            (#"http_requests_total{route="",method="GET",status="404"}"#, 1),
            (#"http_request_duration_seconds_count{route="/v1/channel/{channelId}",method="POST"}"#, 4),
            (#"operations_total{verb="publish",pattern="channel",outcome="done"}"#, 3),
            ("subscriptions", 1), ("feeds", 1), ("websocket_connections", 1), ("broker_connected", 1),

            (#"websocket_handshakes_total{result="accepted"}"#, 1),
        ] {
            let name = "coaty_gateway_" + sample
            // A connection may finish serving a request shortly after the client has received the response.
            try waitUntil(name) { try gateway.metric(name) == expected }
        }
        try waitUntil("all are delivered") { try gateway.metric("coaty_gateway_events_delivered_total") == 3 }
        #expect(try gateway.metric("coaty_gateway_event_wait_seconds_count") ?? 0 >= 1)
        #expect(try gateway.metric("process_open_fds") ?? 0 > 10)
        let started = try #require(try gateway.metric("process_start_time_seconds"))
        #expect(abs(Date().timeIntervalSince1970 - started) < 60)
    }

    @Test func countsReplaysAndReconnects() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let client = try gateway.frameClient()
        let channel = #""event":"channel","channelId":"c""#
        try client.subscribe("s", channel)
        for _ in 0..<2 {
            try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Scene.job("a"))}"#)
        }
        let cursor = try #require(try client.next(of: "s")["cursor"])
        try client.subscribe("r", channel + #","since":"\#(cursor)""#)
        _ = try client.next(of: "r")
        try client.subscribe("u", channel + #","since":"0-1""#)
        #expect(try client.next(of: "u").op == "gap")
        scene.broker.kill()
        try waitUntil("it is offline") { try gateway.metric("coaty_gateway_broker_connected") == 0 }
        #expect(try gateway.post("/v1/channel/c", #"{"object":\#(Scene.job("b"))}"#).status == 202)
        #expect(try gateway.metric("coaty_gateway_broker_queued_messages") == 1)
        #expect(try gateway.metric("coaty_gateway_broker_queued_bytes") ?? 0 > 100)
        try scene.broker.restart()
        for (sample, expected) in [
            (#"replays_total{outcome="complete"}"#, 1.0), (#"replays_total{outcome="unknown"}"#, 1),
            (#"replays_total{outcome="gap"}"#, 0), (#"feed_gaps_total{reason="offline"}"#, 1),
            (#"feed_gaps_total{reason="missed"}"#, 0), ("broker_connected", 1), ("broker_reconnects_total", 1),
            ("broker_messages_deferred_total", 1), ("broker_queued_messages", 0),
        ] {
            try waitUntil(sample) { try gateway.metric("coaty_gateway_" + sample) == expected }
        }
        #expect(try gateway.metric(#"coaty_gateway_log_messages_total{level="warning"}"#) ?? 0 >= 1)
    }

    @Test func lagIsReportedForQueuedPublications() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        try gateway.untilReady()
        func lag() throws -> Double? { try gateway.metric("coaty_gateway_broker_publish_lag_seconds") }
        try waitUntil("all is written") { try lag() == 0 }
        broker.kill()
        try waitUntil("it is offline") { try gateway.metric("coaty_gateway_broker_connected") == 0 }
        let begin = ContinuousClock.now
        let body = #"{"object":\#(Scene.job("a"))}"#
        #expect(try gateway.post("/v1/channel/c", body).status == 202)
        try waitUntil("it has waited") { try lag() ?? 0 > 0.2 }
        #expect(try gateway.post("/v1/channel/c", body).status == 202)
        let second = try #require(try lag())
        #expect(second > 0.2 && second < (ContinuousClock.now - begin) / .seconds(1))
        try broker.restart()
        try waitUntil("all is written") { try lag() == 0 }
    }

    @Test func countsEvaluationsOfHostedContexts() throws {
        let scene = try RoutingScene()
        let count = "coaty_gateway_routing_evaluation_seconds_count"
        let before = try #require(try scene.gateway.metric(count))
        let patch = #"{"operatingState":"emergency"}"#
        let headers = [("Content-Type", "application/merge-patch+json")]
        let answer = try scene.gateway.request("PATCH", RoutingScene.path, headers: headers, body: patch)
        #expect(answer.status == 200)
        #expect(try scene.gateway.metric(count) == before + 1)
        #expect(try scene.gateway.metric("coaty_gateway_routing_evaluation_seconds_sum") ?? 0 > 0)
    }

    @Test func countsTokensAndKeysOfTheIdentityProvider() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        func value(_ sample: String) throws -> Double? {
            try scene.gateway.metric("coaty_gateway_" + sample, headers: AccessScene.headers("ops"))
        }
        func tokens(_ outcome: String) throws -> Double? { try value(#"jwt_tokens_total{outcome="\#(outcome)"}"#) }
        func present(_ token: String) throws -> Int {
            try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status
        }
        try scene.untilKnown(try provider.token())
        let accepted = try #require(try tokens("accepted"))
        #expect(accepted >= 1)
        #expect(try present(try provider.token()) == 200)
        #expect(try present(try provider.token(rest: -31)) == 401)
        #expect(try present(try provider.token("keycloak", "&audience=other")) == 401)
        #expect(try tokens("accepted") == accepted + 1)
        #expect(try tokens("expired") == 1 && tokens("invalid") == 1)
        let early = try #require(try tokens("keys_not_loaded"))
        #expect(try tokens("key_unknown") == 0)
        try provider.post("/rotate")
        #expect(try present(try provider.token()) == 503)
        #expect(try tokens("key_unknown") == 1 && tokens("keys_not_loaded") == early)
        #expect(try value("jwt_keys") == 1)
        let age = try #require(try value("jwks_age_seconds"))
        #expect(age > 0 && age < 60)
        try waitUntil("the other key was fetched") { try value("jwt_keys") == 2 }
        #expect(try #require(try value("jwks_age_seconds")) < age + 10)
        // A token from the configuration does not count as a token of the provider.
        #expect(try tokens("accepted") == accepted + 1)
    }

    @Test func reportsPausedState() throws {
        let scene = try Scene()
        #expect(try scene.gateway.metric("coaty_gateway_paused") == 0)
        #expect(try scene.gateway.post("/v1/admin/pause", "").status == 200)
        #expect(try scene.gateway.metric("coaty_gateway_paused") == 1)
    }

    @Test func metricsRequireTheStatusGrant() throws {
        let scene = try AccessScene(
            AccessFile(
                tokens: [.init("operator", "watching"), .init("device", "sending")],
                roles: ["watching": ["{read: [status]}"], "sending": ["{publish: [raw], topics: [x]}"]]
            )
        )
        #expect(try scene.get("/metrics", as: nil).status == 401)
        #expect(try scene.get("/metrics", as: "device").status == 403)
        let answer = try scene.get("/metrics", as: "operator")
        #expect(answer.status == 200 && answer.headers["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
        let denied = #"coaty_gateway_operations_total{verb="read",pattern="status",outcome="denied"} 1"#
        #expect(answer.text.contains(denied + "\n"))
    }

    /// docs/metrics.md lists exactly the existing metrics.
    @Test func documentListsAllMetrics() throws {
        let port = try FreePort.tcp()
        let certificates = try Certificates()
        let key = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID().uuidString)").path
        try String(repeating: "k", count: 32).write(toFile: key, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: key) }
        let flags = ["--plain-port", "\(port)", "--cluster-key-file", key] + certificates.flags
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"] + flags)
        try waitUntil("it serves") { try RawConnection(port: port).request("GET", "/healthz").status == 200 }
        let text = try RawConnection(port: port).request("GET", "/metrics").text
        withExtendedLifetime((gateway, certificates)) {}
        let types = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { line in
            let words = line.split(separator: " ")
            return "\(words[2]) \(words[3])"
        }
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let document = try String(contentsOf: root.appending(path: "docs/metrics.md"), encoding: .utf8)
        let rows = document.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { row in
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            return cells[0].replacing("`", with: "") + " " + cells[1]
        }
        #expect(Set(types) == Set(rows))
        #expect(types.count == rows.count)
    }
}
