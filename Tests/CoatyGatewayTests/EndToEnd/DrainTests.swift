import Foundation
import TestSupport
import Testing

/// The effects of a stop on clients, and its duration.
@Suite(.exclusive, .frameChecks) struct DrainTests {
    /// Sends a request that no agent answers, and waits until it is published.
    private func ask(_ scene: Scene, on connection: RawConnection, timeout: Int = 60_000) throws {
        let body = #"{"objectTypes":["com.example.None"]}"#
        try connection.send(
            "POST /v1/discover?timeout=\(timeout) HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        _ = try scene.agent.waitFor { $0.asks(body) }
    }

    @Test func clientsAreAskedToReconnectAtDifferentTimes() throws {
        let scene = try Scene(["--limit", "reconnect-spread=4"])
        let sockets = try (0..<40).map { _ in try scene.gateway.stream("advertise?objectType=t") }
        let streams = try (0..<40).map { _ in
            let connection = try RawConnection(port: scene.gateway.port)
            try connection.send("GET /v1/sse/advertise?objectType=t HTTP/1.1\r\nHost: l\r\n\r\n")
            #expect(try connection.readHead().status == 200)
            #expect(String(decoding: try connection.readChunk(), as: UTF8.self).contains("event: ok"))
            return connection
        }
        scene.gateway.signal(SIGTERM)
        let ofStreams = try streams.map { connection in
            let text = String(decoding: try connection.readChunk(), as: UTF8.self)
            let pattern =
                /retry: (\d+)\nevent: notice\ndata: \{"op":"notice","state":"stopping","retryAfter":(\d+)\}\n\n/
            let match = try #require(text.wholeMatch(of: pattern), "\(text)")
            #expect(match.1 == match.2)
            return try #require(Int(match.1))
        }
        let ofSockets = try sockets.map { socket in
            let message = try socket.receive()
            guard case .close(4000, let reason) = message else {
                Issue.record("\(message) is not a close frame with 4000")
                return -1
            }
            let match = try #require(reason.wholeMatch(of: /retry-after=(\d+)/), "\(reason)")
            return try #require(Int(match.1))
        }
        // The delays are spread randomly. A quarter of the range is empty by chance once in 25,000 runs.
        for delays in [ofStreams, ofSockets] {
            #expect(delays.allSatisfy { (0...4000).contains($0) })
            for quarter in 0..<4 {
                #expect(delays.contains { (quarter * 1000...quarter * 1000 + 1000).contains($0) }, "\(delays)")
            }
        }
        #expect(try scene.gateway.waitForEnd() == 0)
    }

    @Test func lateRequestsGetRetryAfter() throws {
        let scene = try Scene(["--limit", "reconnect-spread=30"])
        let asking = try RawConnection(port: scene.gateway.port)
        let kept = try (0..<12).map { _ in
            let connection = try RawConnection(port: scene.gateway.port)
            #expect(try connection.request("GET", "/v1/info").status == 200)
            return connection
        }
        try ask(scene, on: asking)
        scene.gateway.signal(SIGTERM)
        // The listening socket closes a moment before the API refuses requests.
        try waitUntil("it refuses connections") { (try? RawConnection(port: scene.gateway.port)) == nil }
        let delays = try kept.compactMap { connection -> Int? in
            let response = try connection.request("GET", "/v1/info")
            guard response.status == 503 else { return nil }
            #expect(response.problem == "shutting-down")
            return response.headers["retry-after"].flatMap { Int($0) }
        }
        #expect(delays.count >= 6 && delays.allSatisfy { (1...30).contains($0) } && Set(delays).count > 2, "\(delays)")
        #expect(try scene.gateway.waitForEnd() == 0)
    }

    /// With the default stop timeout, pending requests have two seconds.
    @Test func longerStopTimeoutExtendsPendingRequests() throws {
        let scene = try Scene(["--limit", "stop-timeout=14", "--limit", "drain-delay=1"])
        let question = try Question(scene, "/v1/call/op?limit=1&timeout=30000", "{}", topic: "/CLL:op/")
        let began = ContinuousClock.now
        scene.gateway.signal(SIGTERM)
        #expect(throws: (any Error).self) { try question.client.readLine(within: 4) }
        try question.answer("RTN", from: "a", #"{"result":1}"#)
        #expect(try question.client.readResponse().status == 200)
        #expect(try scene.gateway.waitForEnd() == 0)
        #expect(ContinuousClock.now - began < .seconds(14))
    }

    @Test func stopEndsInTimeDespitePendingWork() throws {
        let scene = try Scene(["--limit", "drain-delay=2"])
        let asking = try RawConnection(port: scene.gateway.port)
        try ask(scene, on: asking)
        let stalled = try WebSocketClient.open(port: scene.gateway.port, path: "/v1/ws/advertise?objectType=t")
        try stalled.untilSubscribed()
        let began = ContinuousClock.now
        #expect(try scene.gateway.stop() == 0)
        #expect((.seconds(2)...(.seconds(9.5))).contains(ContinuousClock.now - began))
        withExtendedLifetime(stalled) {}
    }

    /// The broker's announcement would take another 200 ms.
    @Test func stopStepsFitTheStopTimeout() throws {
        for arguments in [
            [], ["--limit", "drain-delay=2"], ["--limit", "stop-timeout=11", "--limit", "drain-delay=1"],
            ["--limit", "stop-timeout=12", "--limit", "drain-delay=4"],
        ] {
            let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"] + arguments)
            #expect(!gateway.log.contains("may need more time to stop"), "\(gateway.log)")
            #expect(try gateway.stop() == 0)
        }
    }

    /// The time that supervisors in `deploy` wait exceeds the stop timeout.
    @Test(arguments: ["coaty-gateway.service", "compose/compose.yaml"])
    func supervisorsWaitLongerThanTheStopTimeout(file: String) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "deploy/" + file), encoding: .utf8)
        let limit = try #require(
            text.firstMatch(of: /(?:TimeoutStopSec=|stop_grace_period: )(\d+)s/).flatMap { Int($0.1) }
        )
        let own = text.firstMatch(of: /(?:stop-timeout|STOP_TIMEOUT)[=: "]+(\d+)/).flatMap { Int($0.1) } ?? 10
        #expect(limit > own)
    }
}
