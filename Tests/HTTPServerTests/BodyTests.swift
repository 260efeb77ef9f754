import HTTPServer
import Testing
import TestSupport

@Suite(.exclusive) struct BodyTests {
    let server: TestServer
    let calls = Box(0)

    init() throws {
        var configuration = HTTPServer.Configuration()
        configuration.maximumBodySize = 100_000
        configuration.connectionTimeout = 1
        let calls = calls
        server = try TestServer(configuration) { router in
            router.on(.post, "/echo") { request in
                calls.update { $0 += 1 }
                return .response(HTTPResponse(status: 200, body: request.body))
            }
        }
    }

    @Test func keepsConnection() throws {
        let connection = try server.connect()
        for text in ["one", "", "three"] {
            try connection.send(post("/echo", text))
            let response = try connection.readResponse()
            #expect(response.status == 200)
            #expect(response.text == text)
        }
        #expect(server.http.statistics.requests == 3)
    }

    @Test func keepsConnectionAfterRefusalOfPathWithBody() throws {
        let connection = try server.connect()
        try connection.send(post("/nothing", "body") + post("/echo", "next"))
        #expect(try connection.readResponse().status == 404)
        #expect(try connection.readResponse().text == "next")
        #expect(calls.value == 1)
    }

    @Test func answersPipelinedRequestsInOrder() throws {
        let connection = try server.connect()
        try connection.send((0..<20).map { post("/echo", "body \($0)") }.joined())
        for index in 0..<20 { #expect(try connection.readResponse().text == "body \(index)") }
    }

    @Test func takesRequestByteByByte() throws {
        let connection = try server.connect()
        for byte in post("/echo", "slow").utf8 { try connection.send([byte]) }
        #expect(try connection.readResponse().text == "slow")
    }

    @Test func takesLargestBody() throws {
        let body = String(repeating: "x", count: 100_000)
        #expect(try server.request(post("/echo", body)).text == body)
    }

    @Test func takesChunkedBody() throws {
        let connection = try server.connect()
        try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        try connection.send("3\r\nabc\r\n")
        try connection.send("2;extension=1\r\nde\r\n0\r\nTrailer: x\r\n\r\n")
        #expect(try connection.readResponse().text == "abcde")
    }

    @Test func refusesTooLargeDeclaredBodyAtOnce() throws {
        let connection = try server.connect()
        try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n")
        let response = try connection.readResponse()
        #expect(response.status == 413)
        #expect(response.headers["connection"]?.lowercased() == "close")
        #expect(response.json?["type"] as? String == "urn:problem:content-too-large")
        #expect(try connection.isClosedByPeer())
        #expect(calls.value == 0)
    }

    @Test func refusesTooLargeChunkedBodyWhenItHasGrown() throws {
        let connection = try server.connect()
        try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = "2710\r\n" + String(repeating: "x", count: 10_000) + "\r\n"
        for _ in 0..<10 { try connection.send(chunk) }
        try connection.send("1\r\nx\r\n")
        let response = try connection.readResponse()
        #expect(response.status == 413)
        #expect(response.json?["status"] as? Int == 413)
        #expect(try connection.isClosedByPeer())
        #expect(calls.value == 0)
    }

    @Test func sends100Continue() throws {
        let connection = try server.connect()
        try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        #expect(try connection.readHead().status == 100)
        try connection.send("body")
        #expect(try connection.readResponse().text == "body")
    }

    @Test func refusesInsteadOf100Continue() throws {
        let connection = try server.connect()
        try connection.send("POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        #expect(try connection.readHead().status == 404)
    }

    @Test func bodyLongerThanDeclaredClosesTheConnection() throws {
        let connection = try server.connect()
        try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyEXTRA\r\n\r\n")
        #expect(try connection.readResponse().text == "body")
        #expect(try connection.isClosedByPeer())
        #expect(calls.value == 1)
        #expect(try server.request(post("/echo", "alive")).text == "alive")
    }

    @Test func bodyShorterThanDeclaredTimesOut() throws {
        let connection = try server.connect()
        try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\nbody")
        #expect(try connection.isClosedByPeer())
        #expect(calls.value == 0)
        #expect(eventually { server.http.statistics.connections == 0 })
    }

    @Test func clientThatLeavesAmidBodyReachesNoHandler() throws {
        do {
            let connection = try server.connect()
            try connection.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\nbody")
            #expect(eventually { server.http.statistics.requests == 1 })
        }
        #expect(eventually { server.http.statistics.connections == 0 })
        #expect(calls.value == 0)
    }
}
