import Foundation
import TestSupport
import Testing

/// REST and WebSocket on one port, including clients that send partial, late or invalid data.
@Suite(.exclusive) struct PortTests {
    private static let key = "Sec-WebSocket-Key: \(WebSocketClient.key)\r\nSec-WebSocket-Version: 13\r\n"
    private static let upgrade = "Host: l\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\(key)\r\n"

    @Test func waitsForASplitRequestLine() throws {
        let scene = try Scene()
        let http = try RawConnection(port: scene.gateway.port)
        for byte in "GET /v1/info HTTP/1.1\r\nHost: l\r\n\r\n".utf8 { try http.send([byte]) }
        #expect(try http.readResponse().status == 200)

        let stream = try RawConnection(port: scene.gateway.port)
        for part in ["G", "ET /v1", "/w", "s", "/deadvertise HTTP/1.1\r\n", Self.upgrade] {
            try stream.send(part)
            // The gateway must receive each part as a separate segment; meanwhile it serves others.
            #expect(try scene.gateway.request("GET", "/healthz").status == 200)
        }
        #expect(try stream.readHead().status == 101)

        // This path starts like that of a stream, but is not one.
        let near = try RawConnection(port: scene.gateway.port)
        try near.send("GET /v1/w")
        #expect(try scene.gateway.request("GET", "/healthz").status == 200)
        try near.send("x HTTP/1.1\r\nHost: l\r\n\r\n")
        #expect(try near.readResponse().problem == "not-found")
    }

    @Test func incompleteConnectionsDoNotBlockOthers() throws {
        let scene = try Scene()
        let silent = try (0..<50).map { _ in try RawConnection(port: scene.gateway.port) }
        let half = try (0..<50).map { _ in try RawConnection(port: scene.gateway.port) }
        for connection in half { try connection.send("GET /v1/ws") }
        let halfHead = try (0..<50).map { _ in try RawConnection(port: scene.gateway.port) }
        for connection in halfHead { try connection.send("POST /v1/advertise HTTP/1.1\r\nHost:") }
        let halfProbes = try (0..<50).map { _ in try RawConnection(port: scene.gateway.port) }
        for (number, connection) in halfProbes.enumerated() {
            let rest = number.isMultiple(of: 2) ? "" : " l\r\nContent-Length: 1\r\n\r\n"
            try connection.send("GET /readyz HTTP/1.1\r\nHost:" + rest)
        }
        for _ in 0..<20 { #expect(try scene.gateway.request("GET", "/healthz").status == 200) }
        // An incomplete request line times out.
        #expect(try half[0].isClosedByPeer(within: 20))
        #expect(try scene.gateway.request("GET", "/healthz").status == 200)
        _ = (silent, halfHead, halfProbes)
    }

    @Test func anUpgradeOnAKeptAliveConnectionIsMisdirected() throws {
        let scene = try Scene()
        let connection = try RawConnection(port: scene.gateway.port)
        for _ in 0..<2 { #expect(try connection.request("GET", "/v1/info").status == 200) }
        try connection.send("GET /v1/ws/deadvertise HTTP/1.1\r\n" + Self.upgrade)
        let response = try connection.readResponse()
        #expect(response.status == 421 && response.problem == "misdirected-request")
        #expect(response.headers["connection"]?.lowercased() == "close")
        #expect(try connection.isClosedByPeer())
    }

    @Test func bodyLengthMismatchClosesTheConnection() throws {
        let scene = try Scene()
        let body = #"{"objectIds":["once"]}"#
        let head = "POST /v1/deadvertise HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
        let longer = try RawConnection(port: scene.gateway.port)
        try longer.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body + "SURPLUS / HTTP/1.1\r\n\r\n")
        #expect(try longer.readResponse().status == 202)
        #expect(try (400..<500).contains(longer.readResponse().status))
        #expect(try longer.isClosedByPeer())

        let shorter = try RawConnection(port: scene.gateway.port)
        try shorter.send(head + "Content-Length: 100\r\n\r\n" + body)
        shorter.shutdownSending()
        // The connection closes at the latest when its idle time ends: libmicrohttpd may miss the end of a body that it
        // waits for.
        #expect(try shorter.isClosedByPeer(within: 45))
        #expect(try scene.gateway.request("GET", "/healthz").status == 200)
        _ = try scene.agent.waitFor { $0.topic.contains("/DAD/") }
        #expect(scene.agent.messages.filter { $0.text == body }.count == 1)
    }

    @Test(arguments: [
        ("127.0.0.1", ["127.0.0.1"]), ("::1", ["[::1]"]), ("::", ["127.0.0.1", "[::1]"]), ("0.0.0.0", ["127.0.0.1"]),

    ])
    func listensOnTheAddressesOfItsHost(_ host: String, _ reached: [String]) throws {
        let port = try FreePort.tcp()
        let gateway = try GatewayProcess(["--host", host, "--embedded-broker-listen", "127.0.0.1:0"], port: port)
        #expect(gateway.output.contains("ready on http://\(host.contains(":") ? "[\(host)]" : host):\(port) "))
        for address in ["127.0.0.1", "[::1]"] + reached {
            let curl = try ChildProcess(
                TestProgram.curl.path(),
                ["-s", "-w", "%{http_code}", "http://\(address):\(port)/v1/status"]
            )
            _ = try curl.waitForEnd()
            #expect(curl.output.hasSuffix("200") == (reached.contains(address)), "\(host) \(address)")
        }
    }

    /// Text from the network must not forge a line in the log.
    @Test func topicsAreEscapedInTheLog() throws {
        let scene = try Scene()
        // Brokers refuse topics with control characters, but not with these characters.
        try scene.agent.publish("coaty/3/-/ADV:Identity/\u{2028}forged\u{202E}", "x")
        try waitUntil("it is logged") { scene.gateway.log.contains("forged") }
        try scene.gateway.untilLogged(#"ADV:Identity/\u{2028}forged\u{202e}"#)
    }

    @Test func connectionsOfHealthChecksServeOneRequest() throws {
        let scene = try Scene()
        for path in ["/healthz", "/readyz?x"] {
            let connection = try RawConnection(port: scene.gateway.port)
            let response = try connection.request("GET", path)
            #expect(response.status == 200 && response.headers["connection"]?.lowercased() == "close")
            #expect(try connection.isClosedByPeer())
        }
        #expect(try scene.gateway.request("GET", "/healthzz").status == 404)
    }

    @Test func refusesAStreamWithoutAHandshake() throws {
        let scene = try Scene()
        let plain = try scene.gateway.request("GET", "/v1/ws/deadvertise")
        #expect(plain.status == 426 && plain.problem == "upgrade-required")
        let kept = try RawConnection(port: scene.gateway.port)
        #expect(try kept.request("GET", "/v1/info").status == 200)
        #expect(try kept.request("GET", "/v1/ws/deadvertise").problem == "upgrade-required")
        let posted = try kept.request("POST", "/v1/ws/deadvertise", body: "")
        #expect(posted.status == 405 && posted.headers["allow"]?.contains("GET") == true)
        let old = [
            ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", WebSocketClient.key),
            ("Sec-WebSocket-Version", "8"),
        ]
        let refused = try scene.gateway.request("GET", "/v1/ws/deadvertise", headers: old)
        #expect(refused.status == 426 && refused.headers["sec-websocket-version"] == "13")
    }
}
