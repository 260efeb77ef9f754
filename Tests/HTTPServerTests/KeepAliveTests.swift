import Glibc
import HTTPServer
import Logging
import Synchronization
import TestSupport
import Testing

/// Idle connections are kept longer than a proxy keeps them, but slow clients do not get this time.
@Suite(.exclusive) struct KeepAliveTests {
    /// The time of the last bytes, as the relay of TLS reports it.
    private final class Clock: ReceptionClock {
        let reception = Atomic(0)
        var lastReception: Int { reception.load(ordering: .relaxed) }

        func note() {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
            reception.store(time.tv_sec * 1000 + time.tv_nsec / 1_000_000, ordering: .relaxed)
        }
    }

    private static let body = [UInt8](repeating: 7, count: 8 << 20)
    private let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    private func configuration(keepAlive: Int) -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration()
        configuration.connectionTimeout = 1
        configuration.keepAliveTimeout = keepAlive
        return configuration
    }

    private func addRoutes(_ router: inout Router) {
        let constant = HTTPResponse(status: 200, body: "ok")
        router.on(.get, "/") { _ in .response(constant) }
        router.on(.post, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
        router.on(.get, "/large") { _ in .response(HTTPResponse(status: 200, body: Self.body)) }
        router.on(.get, "/end") { _ in
            .response(HTTPResponse(status: 200, headers: [("Connection", "close")], body: "ok"))
        }
    }

    private func makeServer(keepAlive: Int) throws -> TestServer {
        try TestServer(configuration(keepAlive: keepAlive), routes: addRoutes)
    }

    /// Sends a request on a connection, and reads its response.
    private func request(_ connection: RawConnection) throws {
        try connection.send(get)
        #expect(try connection.readResponse().text == "ok")
    }

    @Test func idleConnectionIsKeptForItsTimeAndThenClosed() throws {
        let server = try makeServer(keepAlive: 4)
        let connection = try server.connect()
        for _ in 0..<2 {
            try request(connection)
            #expect(try !connection.isClosedByPeer(within: 3.9))
        }
        try request(connection)
        #expect(try connection.isClosedByPeer(within: 8))
    }

    @Test func timeIsAnnouncedWhereTheConnectionIsKept() throws {
        let server = try makeServer(keepAlive: 77)
        let connection = try server.connect()
        for text in [get, get, post("/", "body"), "GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"] {
            try connection.send(text)
            #expect(try connection.readResponse().headers["keep-alive"] == "timeout=77")
        }
        for text in [
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
            "GET /end HTTP/1.1\r\nHost: h\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\n",
        ] {
            #expect(try server.request(text).headers["keep-alive"] == nil)
        }
    }

    @Test func timeIsAtLeastTheConnectionTimeout() throws {
        let server = try makeServer(keepAlive: 0)
        let connection = try server.connect()
        try connection.send(get)
        #expect(try connection.readResponse().headers["keep-alive"] == "timeout=1")
    }

    @Test(arguments: ["G", "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nbody"])
    func stalledRequestOnKeptConnectionIsCut(beginning: String) throws {
        let server = try makeServer(keepAlive: 60)
        let connection = try server.connect()
        try request(connection)
        // The kernel's times are accurate to some milliseconds.
        usleep(100_000)
        try connection.send(beginning)
        #expect(try connection.isClosedByPeer(within: 8))
    }

    @Test(arguments: ["G", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nbody"])
    func stalledFirstRequestIsCut(beginning: String) throws {
        let server = try makeServer(keepAlive: 60)
        let connection = try server.connect()
        try connection.send(beginning)
        #expect(try connection.isClosedByPeer(within: 8))
    }

    @Test func stalledRequestOnRelayedConnectionIsCut() throws {
        var router = Router()
        addRoutes(&router)
        let logger = Logger(label: "test")
        let server = HTTPServer(configuration: configuration(keepAlive: 60), router: router, logger: logger)
        try server.start()
        defer { server.stop() }
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let clock = Clock()
        clock.note()
        let connection = RawConnection(descriptor: ends[0])
        server.adopt(ends[1], peer: "127.0.0.1", context: clock)
        try request(connection)
        #expect(try !connection.isClosedByPeer(within: 3))
        // As a relay notes the bytes that it passes on: otherwise, a request in progress seems to be stalled.
        clock.note()
        try request(connection)
        usleep(100_000)
        clock.note()
        try connection.send("GET /")
        #expect(try connection.isClosedByPeer(within: 8))
    }

    @Test func clientThatDoesNotReadItsResponseIsCut() throws {
        let server = try makeServer(keepAlive: 60)
        let connection = try server.connect(receiveBuffer: 4096)
        try connection.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(eventually { server.http.statistics.connections == 1 })
        #expect(eventually { server.http.statistics.connections == 0 })
        withExtendedLifetime(connection) {}
    }

    @Test func slowReaderOfAResponseIsServed() throws {
        let server = try makeServer(keepAlive: 60)
        let connection = try server.connect(receiveBuffer: 64 << 10)
        try connection.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        let head = try connection.readHead()
        #expect(head.headers["content-length"] == "\(Self.body.count)")
        var count = 0
        while count < Self.body.count {
            count += try connection.read().count
            // Takes about five seconds.
            usleep(40_000)
        }
        #expect(count == Self.body.count)
        try request(connection)
    }
}
