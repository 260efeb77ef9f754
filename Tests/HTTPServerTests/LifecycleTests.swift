import Glibc
import HTTPServer
import Logging
import ProblemDetails
import TestSupport
import Testing

@Suite(.exclusive) struct LifecycleTests {
    @Test func refusedConnectionsAreClosed() throws {
        let server = HTTPServer(configuration: .init(), router: Router(), logger: Logger(label: "test"))
        var pair: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        server.adopt(pair[0], peer: "")
        var byte: UInt8 = 0
        #expect(read(pair[1], &byte, 1) == 0)
        close(pair[1])
        #expect(server.statistics.rejectedConnections == 1)
    }

    @Test func startsOnce() throws {
        let server = HTTPServer(configuration: .init(), router: Router(), logger: Logger(label: "test"))
        try server.start()
        #expect(throws: HTTPServer.StartError.startedBefore) { try server.start() }
        server.stop()
        server.stop()
        #expect(throws: HTTPServer.StartError.startedBefore) { try server.start() }
    }

    @Test func closesConnectionsOverItsLimit() throws {
        var configuration = HTTPServer.Configuration()
        configuration.connectionLimit = 2
        let refused = Box(0)
        configuration.refuse = { descriptor in
            refused.update { $0 += 1 }
            close(descriptor)
        }
        let waiting = Box<[PendingResponse]>([])
        let server = try TestServer(configuration) { router in
            router.on(.get, "/later") { _ in .later { pending in waiting.update { $0.append(pending) } } }
        }
        let held = try (0..<2).map { _ in try server.connect() }
        for connection in held { try connection.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n") }
        #expect(eventually { waiting.value.count == 2 })
        for _ in 0..<50 { #expect(try server.connect().isClosedByPeer()) }
        #expect(server.http.statistics.connections == 2)
        #expect(eventually { server.http.statistics.rejectedConnections == 50 && refused.value == 50 })
        for pending in waiting.value { pending.complete(HTTPResponse(status: 200)) }
        for connection in held { #expect(try connection.readResponse().status == 200) }
    }

    @Test func newConnectionDisplacesTheLongestIdle() throws {
        var configuration = HTTPServer.Configuration()
        configuration.connectionLimit = 3
        let server = try TestServer(configuration) { router in
            router.on(.get, "/later") { _ in .later { _ in } }
        }
        let busy = try server.connect()
        try busy.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(eventually { server.http.statistics.pending == 1 })
        let idle = try (0..<2).map { _ in try server.connect() }
        func ask(_ connection: RawConnection) throws {
            // The server measures idle times with a precision of a few milliseconds.
            usleep(20_000)
            try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().status == 404)
            usleep(20_000)
        }
        for connection in idle { try ask(connection) }
        try ask(idle[0])
        let new = try server.connect()
        try ask(new)
        #expect(try idle[1].isClosedByPeer())
        try ask(idle[0])
        #expect(eventually { server.http.statistics.connections == 3 })
        for _ in 0..<200 {
            let connection = try server.connect()
            try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().status == 404)
        }
        #expect(server.http.statistics.rejectedConnections == 0)
        #expect(server.http.statistics.displacedConnections > 0)
        #expect(server.http.statistics.pending == 1)
    }

    @Test func connectionsOfOneRequestAreClosed() throws {
        var configuration = HTTPServer.Configuration()
        configuration.keepsConnections = { false }
        let server = try TestServer(configuration) { _ in }
        let connection = try server.connect()
        try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try connection.readResponse().headers["connection"]?.lowercased() == "close")
        #expect(try connection.isClosedByPeer())
    }

    @Test func writesProblemsAsJSON() throws {
        let problem = Problem(
            type: "urn:x",
            title: "A \"b\" \\ \n é",
            status: 400,
            detail: "\u{1}",
            members: [("pointer", .string("/a")), ("line", .integer(3))]
        )
        let server = try TestServer { router in router.on(.get, "/") { _ in .response(problem.response()) } }
        let json = try #require(try server.get("/").json)
        #expect(json["title"] as? String == "A \"b\" \\ \n é")
        #expect(json["detail"] as? String == "\u{1}")
        #expect(json["pointer"] as? String == "/a")
        #expect(json["line"] as? Int == 3)
    }

    @Test func headerValuesCannotEndTheirLine() throws {
        let server = try TestServer { router in
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200, headers: [("X-A", "b\r\nX-Evil: c")])) }
        }
        let response = try server.get("/")
        #expect(response.headers["x-a"] == "b  X-Evil: c")
        #expect(response.headers["x-evil"] == nil)
    }
}
