import Foundation
import TestSupport
import Testing

/// `GET /metrics` of a real gateway.
@Suite struct MetricsTests {
    /// Returns the value of a sample, without its labels if none are given.
    private func value(_ sample: String, _ gateway: GatewayProcess) throws -> Double? {
        let text = try gateway.request("GET", "/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }
        return line.flatMap { Double($0.dropFirst(sample.count + 1)) }
    }

    @Test func countsWhatHappens() throws {
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
            (#"operations_total{verb="observe",pattern="channel",outcome="done"}"#, 1),
            ("subscriptions", 1), ("feeds", 1), ("websocket_connections", 1), ("broker_connected", 1),

            (#"websocket_handshakes_total{result="accepted"}"#, 1),
        ] {
            let name = "coaty_gateway_" + sample
            // A connection that serves a request may be done with it a moment later than the client.
            try waitUntil(name) { try value(name, gateway) == expected }
        }
        try waitUntil("all are delivered") { try value("coaty_gateway_events_delivered_total", gateway) == 3 }
        #expect(try value("coaty_gateway_event_wait_seconds_count", gateway) ?? 0 >= 1)
        #expect(try value("process_open_fds", gateway) ?? 0 > 10)
        let started = try #require(try value("process_start_time_seconds", gateway))
        #expect(abs(Date().timeIntervalSince1970 - started) < 60)
    }

    @Test func needsTheGrantForTheStatus() throws {
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

    /// docs/metrics.md lists exactly the metrics that there are.
    @Test func documentListsAllMetrics() throws {
        let port = try FreePort.tcp()
        let certificates = try Certificates()
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--plain-port", "\(port)"] + certificates.flags
        )
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
