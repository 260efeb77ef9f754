import Foundation
import TestSupport
import Testing
import WebSocketServer

@Suite(.exclusive) struct HandshakeTests {
    private static func configuration() -> WebSocketServer.Configuration {
        var configuration = WebSocketServer.Configuration()
        configuration.problemTypePrefix = "https://example.com/problems/"
        return configuration
    }

    private func refusal(
        _ configuration: WebSocketServer.Configuration = Self.configuration(),
        method: String = "GET",
        headers: [(String, String)]
    ) throws -> WebSocketClient.Response {
        let fixture = try Fixture(configuration)
        let client = try WebSocketClient(port: fixture.port)
        let response = try client.shakeHands(method: method, headers: headers)
        #expect(client.isEnded())
        #expect(fixture.server.statistics.refused == 1)
        #expect(fixture.handler.current.requests.isEmpty)
        #expect(fixture.handler.current.closes.isEmpty)
        return response
    }

    @Test func acceptsByRFC6455() throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        #expect(client.response.headers["sec-websocket-accept"] == WebSocketClient.accept)
        #expect(client.response.headers["upgrade"]?.lowercased() == "websocket")
        #expect(client.response.headers["sec-websocket-protocol"] == nil)
        #expect(client.response.headers["sec-websocket-extensions"] == nil)
        #expect(fixture.handler.waits { $0.open.count == 1 })
        #expect(fixture.server.statistics.accepted == 1)
        #expect(fixture.server.statistics.open == 1)
    }

    @Test func handlerRefusesWithStatusHeadersAndBody() throws {
        let body = #"{"type":"x","detail":"\#(String(repeating: "long ", count: 4000))"}"#
        let handler = RecordingHandler(refusal: { path in
            path == "/no"
                ? .refuse(
                    status: 404,
                    headers: [("Content-Type", "application/problem+json"), ("X-Split", "a\r\nInjected: b")],
                    body: Array(body.utf8)
                ) : nil
        })
        let fixture = try Fixture(handler: handler)
        let client = try WebSocketClient(port: fixture.port)
        let response = try client.shakeHands(path: "/no")
        #expect(response.status == 404)
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.headers["connection"] == "close")
        #expect(response.headers["injected"] == nil)
        #expect(response.text == body)
        #expect(client.isEnded())
        #expect(fixture.server.statistics.refused == 1)
        #expect(handler.current.closes.isEmpty)
        _ = try fixture.open("/yes")
    }

    @Test func emptyQueryHasNoItems() throws {
        let fixture = try Fixture()
        _ = try fixture.open("/a?")
        #expect(fixture.handler.current.requests.first?.path == "/a")
        #expect(fixture.handler.current.requests.first?.queryItems == [])
    }

    @Test func queryIsDecodedInOrder() throws {
        let fixture = try Fixture(handler: RecordingHandler(headerNames: ["X-Custom-Thing", "origin", "Absent"]))
        let path = "/v1/ws/a%20b?objectType=com.example.Job&x=1%262&&empty=&bare&x=a+b%2Bc=d&u=%C3%BC"
        let client = try fixture.open(path, headers: [("X-Custom-Thing", "Value, 1"), ("Origin", "http://here")])
        _ = client
        let request = try #require(fixture.handler.current.requests.first)
        #expect(request.path == "/v1/ws/a b")
        #expect(
            request.queryItems == ["objectType=com.example.Job", "x=1&2", "empty=", "bare=", "x=a b+c=d", "u=ü"]
        )
        #expect(request.headers == ["X-Custom-Thing": "Value, 1", "origin": "http://here"])
    }

    @Test(arguments: ["/?channelId=a%ffb", "/?%ff=1", "/?a=1&b=%c3", "/%c3%28", "/?a=\u{fffd}&b=%ed%a0%80"])
    func targetThatIsNotUTF8IsRefused(_ path: String) throws {
        let fixture = try Fixture(Self.configuration())
        let client = try WebSocketClient(port: fixture.port)
        let response = try client.shakeHands(path: path)
        #expect(response.status == 400)
        #expect(response.text.contains("https://example.com/problems/bad-request"))
        #expect(client.isEnded())
        #expect(fixture.handler.current.requests.isEmpty)
    }

    @Test func handshakeOfHTTP10IsRefused() throws {
        let fixture = try Fixture(Self.configuration())
        let client = try WebSocketClient(port: fixture.port)
        let head = """
            GET / HTTP/1.0\r
            Host: x\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: \(WebSocketClient.key)\r
            \r

            """
        try client.sendRaw(Array(head.utf8))
        let response = try client.receiveResponse()
        #expect(response.status == 400)
        #expect(response.text.contains("https://example.com/problems/malformed-handshake"))
        #expect(client.isEnded())
    }

    @Test(arguments: ["192.0.2.7", "2001:db8::7", ""]) func handshakeHasThePeerOfItsConnection(_ peer: String) throws {
        let fixture = try Fixture(Self.configuration(), peer: peer)
        _ = try fixture.open()
        #expect(fixture.handler.current.requests.map(\.peer) == [peer])
    }

    @Test func handshakeHasTheContextOfItsConnection() throws {
        let context = RecordingHandler()
        let fixture = try Fixture(Self.configuration(), context: context)
        _ = try fixture.open()
        #expect(fixture.handler.current.requests.first?.context === context)
    }

    @Test func pathWithoutQuery() throws {
        let fixture = try Fixture()
        _ = try fixture.open("/")
        #expect(fixture.handler.current.requests.first?.path == "/")
        #expect(fixture.handler.current.requests.first?.queryItems == [])
    }

    @Test func firstSupportedSubprotocolIsSelected() throws {
        var configuration = Self.configuration()
        configuration.subprotocols = ["coaty.v1", "coaty.v2"]
        let fixture = try Fixture(configuration)
        let client = try fixture.open(headers: [("Sec-WebSocket-Protocol", "other, coaty.v2,coaty.v1")])
        #expect(client.response.headers["sec-websocket-protocol"] == "coaty.v2")
        let request = try #require(fixture.handler.current.requests.first)
        #expect(request.chosen == "coaty.v2")
        #expect(request.offered == ["other", "coaty.v2", "coaty.v1"])
        try client.sendText("hello")
        #expect(try client.receive() == .text("hello"))
        let plain = try fixture.open()
        #expect(plain.response.headers["sec-websocket-protocol"] == nil)
    }

    @Test(arguments: ["other", "(none)", "a b", String(repeating: "a,", count: 100) + "coaty.v1"])
    func unsupportedSubprotocolIsRefused(_ offer: String) throws {
        var configuration = Self.configuration()
        configuration.subprotocols = ["coaty.v1"]
        let response = try refusal(configuration, headers: [("Sec-WebSocket-Protocol", offer)])
        #expect(response.status == 400)
        #expect(response.text.contains("https://example.com/problems/unsupported-subprotocol"))
    }

    @Test(arguments: ["8", "14", "x"]) func wrongVersionIsRefused(_ version: String) throws {
        let response = try refusal(headers: [("Sec-WebSocket-Version", version)])
        #expect(response.status == 426)
        #expect(response.headers["sec-websocket-version"] == "13")
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.text.contains("https://example.com/problems/unsupported-version"))
    }

    @Test func requestWithoutUpgradeIsRefused() throws {
        let response = try refusal(headers: [("Upgrade", ""), ("Connection", "")])
        #expect(response.status == 426)
        #expect(response.headers["upgrade"] == "websocket")
        #expect(response.headers["connection"] == "upgrade, close")
        #expect(response.text.contains("https://example.com/problems/upgrade-required"))
    }

    @Test func requestWithoutUpgradeGetsTheConfiguredBody() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.upgradeRequired = { path in Array("no handshake at \(path)".utf8) }
        let response = try refusal(configuration, headers: [("Upgrade", ""), ("Connection", "")])
        #expect(response.status == 426 && response.text == "no handshake at /")
    }

    @Test func upgradeToHTTP2IsRefused() throws {
        let response = try refusal(headers: [("Upgrade", "h2c")])
        #expect(response.status == 426)
    }

    @Test(arguments: [
        ("Sec-WebSocket-Key", ""), ("Sec-WebSocket-Key", "short"), ("Sec-WebSocket-Version", ""),
        ("Connection", "keep-alive"), ("Connection", ""), ("Host", ""),
        ("Connection", String(repeating: "a, ", count: 60) + "Upgrade"),
        ("Sec-WebSocket-Extensions", String(repeating: "a", count: 255)),
    ])
    func malformedHandshakeIsRefused(_ header: (String, String)) throws {
        let response = try refusal(headers: [header])
        #expect(response.status == (header.0 == "Sec-WebSocket-Version" ? 426 : 400))
        #expect(response.headers["content-type"] == "application/problem+json")
    }

    @Test(arguments: [
        ("permessage-deflate; client_max_window_bits", true), ("other" + String(repeating: "r", count: 249), false),
    ])
    func compressionIsNegotiatedIfEnabled(_ offer: (text: String, isAgreedTo: Bool)) throws {
        var configuration = Self.configuration()
        configuration.allowsCompression = true
        let fixture = try Fixture(configuration)
        let client = try fixture.open(headers: [("Sec-WebSocket-Extensions", offer.text)])
        let agreed = client.response.headers["sec-websocket-extensions"] ?? ""
        #expect(agreed.hasPrefix("permessage-deflate") == offer.isAgreedTo)
        // A client may leave any message uncompressed (RFC 7692, 6).
        try client.sendText("plain")
        #expect(fixture.handler.waits { $0.messages == [.text("plain")] })
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"], [true, false])
    func otherMethodsAreRefused(_ method: String, _ withUpgrade: Bool) throws {
        let response = try refusal(method: method, headers: withUpgrade ? [] : [("Upgrade", ""), ("Connection", "")])
        #expect(response.status == 405)
        #expect(response.headers["allow"] == "GET")
        #expect(response.body.isEmpty == (method == "HEAD"))
    }

    @Test func handshakeInPiecesIsAccepted() throws {
        let fixture = try Fixture()
        let client = try WebSocketClient(port: fixture.port)
        for piece in [
            "GET /piec", "es?a=", "b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnec", "tion: Upgrade\r",
            "\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(WebSocketClient.key)\r\n\r", "\n",
        ] {
            try client.sendRaw(Array(piece.utf8))
            usleep(3000)
        }
        #expect(try client.receiveResponse().status == 101)
        #expect(fixture.handler.current.requests.first?.queryItems == ["a=b"])
    }

    @Test func handshakeThatDoesNotEndIsCut() throws {
        var configuration = Self.configuration()
        configuration.handshakeTimeout = .milliseconds(200)
        let fixture = try Fixture(configuration)
        let silent = try WebSocketClient(port: fixture.port)
        let slow = try WebSocketClient(port: fixture.port)
        try slow.sendRaw(Array("GET / HTTP/1.1\r\nHost: x\r\n".utf8))
        let whole = try fixture.open()
        #expect(silent.isEnded())
        #expect(slow.isEnded())
        #expect(fixture.server.statistics.handshakeTimeouts == 2)
        try whole.sendText("still here")
        #expect(try whole.receive() == .text("still here"))
    }

    @Test func unfinishedHandshakesDoNotBlockOthers() throws {
        var configuration = Self.configuration()
        configuration.handshakeTimeout = .seconds(60)
        let fixture = try Fixture(configuration)
        let limit = 1024
        let halfway = try (0..<limit).map { _ in
            let client = try WebSocketClient(port: fixture.port)
            try client.sendRaw(Array("GET / HTTP/1.1\r\n".utf8))
            return client
        }
        let client = try fixture.open()
        try client.sendText("in")
        #expect(try client.receive() == .text("in"))
        #expect(halfway[0].isEnded())
        #expect(fixture.server.statistics.refused == 1)
        try halfway[limit - 1].sendRaw(
            Array(
                "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n".utf8
            ) + Array("Sec-WebSocket-Key: \(WebSocketClient.key)\r\n\r\n".utf8)
        )
        #expect(try halfway[limit - 1].receiveResponse().status == 101)
    }

    @Test func connectionsBeyondTheLimitAreRefused() throws {
        var configuration = Self.configuration()
        configuration.maximumConnections = 2
        let fixture = try Fixture(configuration)
        let first = try fixture.open()
        let second = try fixture.open()
        let third = try WebSocketClient(port: fixture.port)
        let response = try third.shakeHands()
        #expect(response.status == 503)
        #expect(response.headers["retry-after"] == "1")
        #expect(response.text.contains("https://example.com/problems/too-many-connections"))
        try first.sendClose(code: 1000)
        #expect(first.isEnded())
        #expect(fixture.handler.waits { $0.open.count == 1 })
        #expect(eventually { (try? fixture.open()) != nil })
        try second.sendText("undisturbed")
        #expect(try second.receive() == .text("undisturbed"))
    }
}
