import Glibc
import HTTPServer
import Logging
import TestSupport
import Testing

@Suite struct LifecycleTests {
    @Test func closesWhatItDoesNotAdopt() throws {
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
        let server = try TestServer(configuration) { _ in }
        let held = try (0..<2).map { _ in try server.connect() }
        for connection in held {
            try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().status == 404)
        }
        #expect(try server.connect().isClosedByPeer())
        for _ in 0..<50 { #expect(try server.connect().isClosedByPeer()) }
        #expect(server.http.statistics.connections == 2)
        #expect(eventually { server.http.statistics.rejectedConnections == 51 })
        withExtendedLifetime(held) {}
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
