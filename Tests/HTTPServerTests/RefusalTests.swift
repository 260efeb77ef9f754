import HTTPServer
import Testing
import TestSupport

@Suite(.exclusive) struct RefusalTests {
    let server: TestServer

    init() throws {
        var configuration = HTTPServer.Configuration()
        configuration.connectionTimeout = 2
        server = try TestServer(configuration) { router in
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
            router.on(.post, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
        }
    }

    @Test(arguments: [true, false])
    func refusesLargeHead(inTarget: Bool) throws {
        let padding = String(repeating: "a", count: 9000)
        let target = inTarget ? "/?\(padding)" : "/"
        let field = inTarget ? "" : "X: \(padding)\r\n"
        let response = try server.request("GET \(target) HTTP/1.1\r\nHost: h\r\n\(field)\r\n")
        #expect(response.status == 431)
        #expect(response.json?["type"] as? String == "urn:problem:header-fields-too-large")
        #expect(response.headers["connection"]?.lowercased() == "close")
    }

    @Test func refusesUpgradeOnKeptAliveConnection() throws {
        let connection = try server.connect()
        try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try connection.readResponse().status == 200)
        try connection.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: foo, WebSocket\r\n\r\n")
        let response = try connection.readResponse()
        #expect(response.status == 421)
        #expect(response.headers["connection"]?.lowercased() == "close")
        #expect(response.json?["type"] as? String == "urn:problem:misdirected-request")
        #expect(try connection.isClosedByPeer())
    }

    @Test(arguments: [
        ("Host: h\r\nContent-Length: 3\r\nContent-Length: 4", 400),
        ("Host: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked", 400),
        ("Host: h\r\nContent-Length : 3", 400), ("Host: h\r\nHost: i", 400),
        ("Host: h\r\nContent-Length:\r\n 3", 400), ("Host: h\r\nContent-Length:\r\n\t3", 400),
        ("Host: h\r\nContent-Length:\r\n 0\r\nContent-Length: 3", 400),
        ("Host: h\r\nTransfer-Encoding:\r\n chunked", 400), ("Host: h\r\nTransfer-Encoding: \r\n chunked", 400),
        ("Host: h\r\nContent-Lengt: 3\r\n h", 400), ("Host: h\r\nTransfer-Encodin: chunked\r\n g", 400),
        ("Hos: h\r\n t", 400), ("Host: h\r\nX: a\r\n ", 400), ("Host: h\r\nX: a\r\n b", 400),
        ("Host: h\r\nX: \r\n b", 400),
        ("Host: h\r\n\u{B}Content-Length: 3", 400), ("Host: h\r\nContent Length: 3", 400),
        ("Host: h\r\nOrigin: http://a\r\nOrigin: http://b", 400),
        ("Host: h\r\nContent-Length-Extra: 3", 400), ("Host: h\r\nTransfer-Encodings: chunked", 400),
        ("Host: h\r\nTransfer-Encoding: gzip, chunked", 501),
        ("Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 501),
    ])
    func refusesAmbiguousFraming(fields: String, status: Int) throws {
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\n\(fields)\r\n\r\n")
        let response = try connection.readResponse()
        #expect(response.status == status)
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(try connection.isClosedByPeer())
    }

    /// The same names and values are valid on separate lines.
    @Test(arguments: [
        "Host:h", "Host:  \t h \t", "Host: h\r\nX:", "Host: h\r\nX: ", "Host: h\r\nX:\t", "Host: h\r\nX: a, b\r\nX: c",
        "Host: h\r\n!#$%&'*+-.^_`|~09azAZ: x", "Host: h\r\nContent-Length: 0", "Host: h\r\nOrigin: http://a",
    ])
    func acceptsWellFormedFields(fields: String) throws {
        let connection = try server.connect()
        for _ in 0..<2 {
            try connection.send("GET / HTTP/1.1\r\n\(fields)\r\n\r\n")
            #expect(try connection.readResponse().status == 200)
        }
    }

    @Test func chunksNeedHTTP11() throws {
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        #expect(try connection.readResponse().status == 400)
        #expect(try connection.isClosedByPeer())
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"])
    func refusesMissingHostAndSpace(text: String) throws {
        let response = try server.request(text)
        #expect(response.status == 400)
        #expect(response.headers["content-type"] == "application/problem+json")
    }

    @Test func HTTP10NeedsNoHost() throws {
        let response = try server.request("GET / HTTP/1.0\r\n\r\n")
        #expect(response.status == 200)
        #expect(response.text == "ok")
    }

    /// Responses that libmicrohttpd itself sends. The list in the documentation of ``HTTPServer`` must match this test.
    @Test(arguments: [
        (RawRequest("GET / HTTP/2.0", ""), 505, "Requested HTTP version is not supported"),
        (RawRequest("GET / HTTP/0.9", ""), 505, "Requested HTTP version is not supported"),
        (RawRequest("GET / HTTX/1.1", ""), 400, "Request malformed"),
        (RawRequest("GET /", ""), 400, "Request malformed"),
        (RawRequest("GET / HTTP/1.1", "no colon\r\n\r\n"), 400, "Request malformed"),
        (RawRequest("POST / HTTP/1.1", "Content-Length: -1\r\n\r\n"), 400, ""),
        (RawRequest("POST / HTTP/1.1", "Content-Length: 4x\r\n\r\n"), 400, ""),
        (RawRequest("POST / HTTP/1.1", "Content-Length: 99999999999999999999\r\n\r\n"), 413, ""),
        (RawRequest("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400, "Request malformed"),
        (
            RawRequest("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"), 413,
            "Request content too large"
        ),
        (RawRequest("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\n1\r\nabc"), 400, "Request malformed"),
        (RawRequest("GET / HTTP/1.1", "X: \(String(repeating: "a", count: 40_000))\r\n\r\n"), 431, "Request too big"),
        (RawRequest("GET / HTTP/1.1", String(repeating: "a: b\r\n", count: 1300) + "\r\n"), 431, "Request too big"),
        (RawRequest("GET /\(String(repeating: "a", count: 40_000)) HTTP/1.1", ""), 414, "Request too big"),
    ])
    func libmicrohttpdRefuses(request: RawRequest, status: Int, title: String) throws {
        let response = try server.request(request.text)
        #expect(response.status == status)
        #expect(response.headers["content-type"] == nil)
        #expect(response.headers["connection"]?.lowercased() == "close")
        if title.isEmpty {
            // libmicrohttpd 0.9.75 sends the head of this response twice, the second time in place of the body.
            #expect(response.text.hasPrefix("HTTP/1.1 \(status) "))
        } else {
            #expect(response.text.hasPrefix("<html><head><title>\(title)</title></head>"))
        }
    }

    /// The second and third connections close by a timeout.
    @Test(arguments: [
        RawRequest("garbage", ""), RawRequest("GET / HTTP/1.1", "Half"),
        RawRequest("GET /?\(String(repeating: "a&", count: 3000)) HTTP/1.1", ""),
    ])
    func libmicrohttpdClosesWithoutAnswer(request: RawRequest) throws {
        let connection = try server.connect()
        try connection.send(request.text)
        #expect(try connection.isClosedByPeer())
        #expect(try server.get("/").text == "ok")
    }
}

/// A request that is truncated in the names of test cases.
struct RawRequest: CustomTestStringConvertible {
    let text: String
    var testDescription: String { String(text.prefix(100)).debugDescription }

    init(_ requestLine: String, _ rest: String) {
        text = "\(requestLine)\r\nHost: h\r\n\(rest.isEmpty ? "\r\n" : rest)"
    }
}
