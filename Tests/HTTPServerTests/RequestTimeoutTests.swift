import Dispatch
import Glibc
import HTTPServer
import TestSupport
import Testing

@Suite(.exclusive) struct RequestTimeoutTests {
    let waiting = Box<[PendingResponse]>([])
    let streams = Box<[HTTPStream]>([])

    private func makeServer(connectionTimeout: Int = 60) throws -> TestServer {
        var configuration = HTTPServer.Configuration()
        configuration.connectionTimeout = connectionTimeout
        configuration.requestTimeout = 1
        let (waiting, streams) = (waiting, streams)
        return try TestServer(configuration) { router in
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
            router.on(.post, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
            router.on(.get, "/later") { _ in .later { pending in waiting.update { $0.append(pending) } } }
            router.on(.get, "/stream") { _ in
                .stream(status: 200, headers: []) { stream in streams.update { $0.append(stream) } }
            }
        }
    }

    /// Sends bytes one by one until the server closes the connection; returns `false` if it does not close it in time.
    private func isCutWhileSending(_ connection: RawConnection, meanwhile: () throws -> Void = {}) throws -> Bool {
        let deadline = DispatchTime.now() + 20
        while DispatchTime.now() < deadline {
            do { try connection.send("a") } catch RawConnection.Failure.system { return true }
            if try connection.isClosedByPeer(within: 0.02) { return true }
            try meanwhile()
        }
        return false
    }

    /// Waits until the requests that are already pending have timed out.
    private func waitForTimeout(_ server: TestServer, meanwhile: () throws -> Void = {}) throws {
        for _ in 0..<2 {
            let late = try server.connect()
            try late.send("GET /")
            try #require(try isCutWhileSending(late, meanwhile: meanwhile))
        }
    }

    private let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test(arguments: [
        "GET /", "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n",
        "POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",
    ])
    func cutsTrickledRequest(beginning: String) throws {
        let server = try makeServer()
        let connection = try server.connect()
        try connection.send(beginning)
        #expect(try isCutWhileSending(connection))
        #expect(eventually { server.http.statistics.connections == 0 })
    }

    @Test func cutsTrickledRequestOnKeptAliveConnection() throws {
        let server = try makeServer(connectionTimeout: 2)
        let connection = try server.connect()
        try connection.send(get)
        #expect(try connection.readResponse().text == "ok")
        try connection.send("GET /")
        #expect(try isCutWhileSending(connection))
    }

    @Test func leavesSuspendedRequestsAndStreams() throws {
        let server = try makeServer()
        let suspended = try server.connect()
        try suspended.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
        let streaming = try server.connect()
        try streaming.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try streaming.readHead().status == 200)
        #expect(eventually { waiting.value.count == 1 && streams.value.count == 1 })
        let stream = try #require(streams.value.first)
        let pending = try #require(waiting.value.first)
        try waitForTimeout(server) {
            #expect(stream.write([7]) == .queued)
            let chunk = try streaming.readChunk()
            #expect(chunk == [7])
        }
        #expect(pending.complete(HTTPResponse(status: 200, body: "late")))
        #expect(try suspended.readResponse().text == "late")
        stream.finish()
        #expect(try streaming.readChunk().isEmpty)
        for connection in [suspended, streaming] {
            try connection.send(get)
            #expect(try connection.readResponse().text == "ok")
        }
    }

    @Test func leavesKeptAliveConnections() throws {
        let server = try makeServer()
        let idle = try server.connect()
        try idle.send(get)
        #expect(try idle.readResponse().text == "ok")
        let busy = try server.connect()
        try waitForTimeout(server) {
            try busy.send(get + post("/", "body"))
            #expect(try busy.readResponse().text == "ok")
            #expect(try busy.readResponse().text == "ok")
        }
        try idle.send(get)
        #expect(try idle.readResponse().text == "ok")
    }
}
