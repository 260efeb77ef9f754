import Dispatch
import HTTPServer
import TestSupport
import Testing

/// Requests that are answered before their body has arrived.
@Suite(.exclusive) struct LingeringTests {
    private let discarded = Box<[Int]>([])

    private func makeServer(_ change: (inout HTTPServer.Configuration) -> Void = { _ in }) throws -> TestServer {
        var configuration = HTTPServer.Configuration()
        configuration.maximumBodySize = 1000
        let discarded = discarded
        configuration.ended = { request in
            let bytes = request.discardedBytes
            discarded.update { $0.append(bytes) }
        }
        change(&configuration)
        return try TestServer(configuration) { router in
            router.on(.post, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
            router.admission = { head in
                if head.header("X-Budget") != nil { return .admit(headers: [], budget: NoBudget()) }
                guard head.header("X-Wrong") != nil else { return .admit(headers: [("X-Admitted", "yes")]) }
                return .answer(HTTPResponse(status: 401, headers: [("WWW-Authenticate", "Bearer")], body: "no"))
            }
        }
    }

    /// More than the buffers of both sockets.
    private static let size = 16 << 20
    private static let length = "Content-Length: \(size)\r\n"
    private static let chunked = "Transfer-Encoding: chunked\r\n"

    /// Sends a whole body before it reads the answer.
    private func answer(
        to requestLine: String,
        _ fields: String,
        from server: TestServer
    ) throws -> RawConnection.Response {
        let connection = try server.connect()
        try connection.send("\(requestLine) HTTP/1.1\r\nHost: h\r\n\(fields)\r\n")
        let piece = Array(repeating: UInt8(ascii: "x"), count: 1 << 20)
        let isChunked = fields.contains(Self.chunked)
        for _ in 0..<(Self.size / piece.count) {
            if isChunked { try connection.send("100000\r\n") }
            try connection.send(piece)
            if isChunked { try connection.send("\r\n") }
        }
        if isChunked { try connection.send("0\r\n\r\n") }
        let response = try connection.readResponse(toHead: requestLine.hasPrefix("HEAD"))
        #expect(try connection.isClosedByPeer())
        return response
    }

    @Test(arguments: [
        ("POST /", length, 413), ("POST /", chunked, 413), ("POST /nothing", length, 404),
        ("POST /nothing", chunked, 404),
        ("DELETE /", length, 405), ("POST /", "X-Wrong: 1\r\n" + length, 401),
        ("POST /", "X-Wrong: 1\r\n" + chunked, 401),
        ("POST /", "Connection: Upgrade\r\nUpgrade: websocket\r\n" + length, 421), ("HEAD /nothing", length, 404),
        ("POST /", "X: \(String(repeating: "x", count: 9000))\r\n" + length, 431),
        ("POST /", "X-Budget: 1\r\n" + chunked, 503),
    ])
    func clientThatSendsItsWholeBodyFirstGetsTheAnswer(requestLine: String, fields: String, status: Int) throws {
        let server = try makeServer { if fields.contains("X-Budget") { $0.maximumBodySize = 1 << 20 } }
        let response = try answer(to: requestLine, fields, from: server)
        #expect(response.status == status)
        #expect(response.headers["connection"] == "close")
        #expect(response.headers["date"]?.hasSuffix(" GMT") == true)
        if status == 401 {
            #expect(response.headers["www-authenticate"] == "Bearer" && response.text == "no")
        } else if status != 431, !requestLine.hasPrefix("HEAD") {
            #expect(response.json?["status"] as? Int == status)
        }
        #expect(eventually { server.http.statistics.connections == 0 })
        #expect(server.http.statistics.refused == 1)
        // The client of a refused request is charged for its body. The last part is not read if it has left.
        #expect(discarded.value.count == 1 && discarded.value.allSatisfy { (Self.size / 2...Self.size).contains($0) })
    }

    @Test func drainingServerAnswersBeforeTheBody() throws {
        let server = try makeServer()
        server.http.drain()
        let response = try answer(to: "POST /", Self.length, from: server)
        #expect(response.status == 503 && response.headers["retry-after"] != nil)
    }

    @Test func answerIsSentBeforeTheBodyArrives() throws {
        let server = try makeServer()
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\nHost: h\r\n\(Self.length)\r\n")
        #expect(try connection.readResponse().status == 413)
        // Only its sending side is closed.
        #expect(try connection.isClosedByPeer())
        for _ in 0..<16 { try connection.send(Array(repeating: 0, count: 1 << 20)) }
    }

    @Test func discardedBytesAreBounded() throws {
        let server = try makeServer { $0.maximumDiscardedBodySize = 1 << 20 }
        #expect(throws: RawConnection.Failure.self) { try answer(to: "POST /", Self.length, from: server) }
        #expect(eventually { server.http.statistics.connections == 0 })
        #expect(discarded.value.allSatisfy { $0 < 3 << 20 })
    }

    @Test(arguments: [true, false]) func discardingTimeIsBounded(isSending: Bool) throws {
        let server = try makeServer {
            $0.discardTimeout = 1
            $0.connectionTimeout = 4
        }
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\nHost: h\r\n\(Self.length)\r\n")
        #expect(try connection.readResponse().status == 413)
        #expect(
            eventually {
                if isSending { try? connection.send("x") }
                return server.http.statistics.connections == 0
            }
        )
    }

    @Test func slowClientGetsItsRefusalAtTheBound() throws {
        let server = try makeServer { $0.discardTimeout = 1 }
        let connection = try server.connect()
        try connection.send("POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n")
        var answer: [UInt8] = []
        #expect(
            eventually {
                try? connection.send("x")
                answer += (try? connection.read(within: 0.02)) ?? []
                return !answer.isEmpty
            }
        )
        #expect(String(decoding: answer, as: UTF8.self).hasPrefix("HTTP/1.1 404 Not Found\r\n"))
        #expect(try connection.isClosedByPeer())
    }

    @Test func newConnectionReplacesOneThatIsOnlyDiscarded() throws {
        let server = try makeServer { $0.connectionLimit = 1 }
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\nHost: h\r\n\(Self.length)\r\n")
        #expect(try connection.readResponse().status == 413)
        #expect(try server.get("/").text == "ok")
        #expect(server.http.statistics.displacedConnections == 1)
    }

    @Test func discardingDoesNotDelayTheStop() throws {
        let server = try makeServer { $0.stopTimeout = .seconds(20) }
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\nHost: h\r\n\(Self.length)\r\n")
        #expect(try connection.readResponse().status == 413)
        let begin = DispatchTime.now()
        server.http.stop()
        #expect(DispatchTime.now() < begin + 10)
    }

    @Test func waitingClientGetsTheRefusalInsteadOfPermission() throws {
        let server = try makeServer()
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\nHost: h\r\n\(Self.length)Expect: 100-continue\r\n\r\n")
        #expect(try connection.readResponse().status == 413)
        #expect(try connection.isClosedByPeer())
    }

    /// Go's transport, and so Caddy, sends the body at once.
    @Test(arguments: ["100-continue", "100-Continue"], [length, chunked])
    func clientThatDoesNotWaitForPermissionGetsTheRefusal(expectation: String, framing: String) throws {
        let response = try answer(to: "POST /", framing + "Expect: \(expectation)\r\n", from: makeServer())
        #expect(response.status == 413)
    }
}

/// A budget without memory.
private final class NoBudget: HTTPServer.ByteBudget {
    func take(_ bytes: Int) -> Bool { false }
    func give(_ bytes: Int) {}
}
