import Dispatch
import Glibc
import HTTPServer
import TestSupport
import Testing

/// How a stream sends on the socket of its connection.
@Suite(.exclusive) struct StreamSendingTests {
    let streams = Box<[HTTPStream]>([])
    let closed = Box(0)

    private func makeServer(
        _ configuration: HTTPServer.Configuration = .init(),
        _ begin: @escaping @Sendable (HTTPStream) -> Void = { _ in }
    ) throws -> TestServer {
        let (streams, closed) = (streams, closed)
        return try TestServer(configuration) { router in
            router.on(.get, "/stream") { _ in
                .stream(status: 200, headers: []) { stream in
                    stream.onClose { closed.update { $0 += 1 } }
                    begin(stream)
                    streams.update { $0.append(stream) }
                }
            }
        }
    }

    private func open(_ connection: RawConnection, version: String = "1.1") throws -> HTTPStream {
        try connection.send("GET /stream HTTP/\(version)\r\nHost: h\r\n\r\n")
        let (_, headers) = try connection.readHead()
        #expect(headers["transfer-encoding"] == (version == "1.1" ? "chunked" : nil))
        return try #require(streams.value.last)
    }

    /// Returns a connection on which the server bounds neither the kernel's buffer nor the time of sending.
    private func connectWithSocketPair(_ server: TestServer) throws -> RawConnection {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        server.http.adopt(ends[1], peer: "127.0.0.1")
        return RawConnection(descriptor: ends[0])
    }

    /// Numbers of one to seven digits, which make a missing, repeated or displaced byte visible.
    private static func text(of range: Range<Int>) -> [UInt8] { Array(range.map { "\($0)," }.joined().utf8) }

    private func readBody(_ connection: RawConnection) throws -> [UInt8] {
        var body: [UInt8] = []
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { body += chunk }
        return body
    }

    @Test func framesAreChunksOfHTTP() throws {
        let server = try makeServer()
        let connection = try server.connect()
        let stream = try open(connection)
        #expect(stream.write([Array("ab".utf8), [], Array("c".utf8)]) == .queued)
        #expect(String(decoding: try connection.read(count: 8), as: UTF8.self) == "3\r\nabc\r\n")
        #expect(stream.write([]) == .queued)
        for size in [1, 9, 10, 15, 16, 255, 256, 4095, 4096, 16384] {
            let body = [UInt8](repeating: UInt8(ascii: "x"), count: size)
            #expect(stream.write(body) == .queued)
            let frame = Array("\(String(size, radix: 16))\r\n".utf8) + body + Array("\r\n".utf8)
            #expect(try connection.read(count: frame.count) == frame, "\(size) bytes")
        }
        stream.finish()
        #expect(String(decoding: try connection.read(count: 5), as: UTF8.self) == "0\r\n\r\n")
        // Nothing else was sent.
        try connection.send("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try connection.readResponse().status == 404)
    }

    @Test func bodyOfHTTP10EndsWithTheConnection() throws {
        let server = try makeServer()
        let connection = try server.connect(receiveBuffer: 4096)
        let stream = try open(connection, version: "1.0")
        let body = Self.text(of: 0..<200_000)
        #expect(stream.write(body) == .queued)
        stream.finish(with: Array("end".utf8))
        var received: [UInt8] = []
        while case let bytes = try connection.read(), !bytes.isEmpty { received += bytes }
        #expect(received == body + Array("end".utf8))
    }

    @Test func slowReaderGetsEveryByte() throws {
        var configuration = HTTPServer.Configuration()
        configuration.streamQueueSize = 32 * 1024
        let server = try makeServer(configuration)
        let connection = try server.connect(receiveBuffer: 4096)
        let stream = try open(connection)
        let writing = DispatchGroup()
        let room = DispatchSemaphore(value: 0)
        stream.onRoom { room.signal() }
        runBeside(writing) {
            // Writes of very different sizes, so that frames are interrupted everywhere.
            var next = 0
            for step in 0..<2000 {
                let text = Self.text(of: next..<next + 1 + step * 7 % 500)
                next += 1 + step * 7 % 500
                while stream.write(text) == .full {
                    guard room.wait(timeout: .now() + 10) == .success else { return stream.abort() }
                }
            }
            stream.finish()
        }
        let total = (0..<2000).reduce(0) { $0 + 1 + $1 * 7 % 500 }
        #expect(try readBody(connection) == Self.text(of: 0..<total))
        writing.wait()
    }

    @Test func socketPairCarriesEveryByte() throws {
        let server = try makeServer()
        let connection = try connectWithSocketPair(server)
        let stream = try open(connection)
        let body = Self.text(of: 0..<300_000)
        #expect(stream.write([Array(body[..<100]), Array(body[100...])]) == .queued)
        stream.finish()
        #expect(try readBody(connection) == body)
        #expect(eventually { closed.value == 1 })
    }

    @Test func writesOfSeveralThreadsAreNotMixed() throws {
        let server = try makeServer()
        let connection = try server.connect()
        let stream = try open(connection)
        let writing = DispatchGroup()
        for writer in 0..<4 {
            runBeside(writing) {
                for number in 0..<500 {
                    let parts = ["\(writer) ", "\(number)", "\n"].map { Array($0.utf8) }
                    while stream.write(parts) == .full { sched_yield() }
                }
            }
        }
        writing.notify(queue: .global()) { stream.finish() }
        let lines = try readBody(connection).split(separator: UInt8(ascii: "\n"))
        #expect(lines.count == 2000)
        for writer in 0..<4 {
            let own = lines.map { String(decoding: $0, as: UTF8.self) }.filter { $0.hasPrefix("\(writer) ") }
            #expect(own == (0..<500).map { "\(writer) \($0)" })
        }
    }

    @Test(arguments: [10, 1_000_000]) func streamThatEndsAtOnceIsComplete(count: Int) throws {
        let body = Self.text(of: 0..<count)
        let server = try makeServer { stream in
            stream.write(body)
            stream.finish()
        }
        let connection = try server.connect(receiveBuffer: 4096)
        for _ in 0..<2 {
            _ = try open(connection)
            #expect(try readBody(connection) == body)
        }
        #expect(eventually { closed.value == 2 && server.http.statistics.streams == 0 })
    }

    @Test func clientThatClosesWhileBytesAreQueuedEndsTheStream() throws {
        let server = try makeServer()
        let stream: HTTPStream
        do {
            let connection = try server.connect(receiveBuffer: 4096)
            stream = try open(connection)
            #expect(stream.write([UInt8](repeating: 7, count: 8 * 1024 * 1024)) == .queued)
            #expect(stream.write([UInt8](repeating: 7, count: 256 * 1024)) == .full)
        }
        #expect(eventually { closed.value == 1 && server.http.statistics.connections == 0 })
        #expect(stream.write([1]) == .closed)
        #expect(server.http.statistics.streams == 0)
    }

    @Test func clientThatShutsDownSendingEndsTheStream() throws {
        let server = try makeServer()
        let connection = try server.connect()
        let stream = try open(connection)
        connection.shutdownSending()
        #expect(eventually { closed.value == 1 })
        #expect(stream.write([1]) == .closed)
        #expect(try connection.isClosedByPeer())
    }

    @Test func departureIsNoticedAfterTheSocketWasFull() throws {
        let server = try makeServer()
        let connection = try server.connect(receiveBuffer: 4096)
        let stream = try open(connection)
        let body = [UInt8](repeating: 7, count: 8 * 1024 * 1024)
        #expect(stream.write(body) == .queued)
        #expect(stream.write(body) == .full)
        var received = 0
        while received < body.count { received += try connection.readChunk().count }
        #expect(!stream.isClosed)
        connection.shutdownSending()
        #expect(eventually { closed.value == 1 })
    }

    /// The kernel bounds the time of sending only for TCP.
    @Test func readerOfSocketPairThatReadsNothingIsDisconnected() throws {
        var configuration = HTTPServer.Configuration()
        configuration.connectionTimeout = 1
        let server = try makeServer(configuration)
        let connection = try connectWithSocketPair(server)
        let stream = try open(connection)
        #expect(eventually { stream.write([UInt8](repeating: 7, count: 16 * 1024)) == .full })
        #expect(!stream.isClosed)
        #expect(eventually { closed.value == 1 && server.http.statistics.connections == 0 })
        withExtendedLifetime(connection) {}
    }

    @Test func abortWithQueuedBytesCutsTheBody() throws {
        let server = try makeServer()
        let connection = try server.connect(receiveBuffer: 4096)
        let stream = try open(connection)
        #expect(stream.write([UInt8](repeating: 7, count: 8 * 1024 * 1024)) == .queued)
        stream.abort()
        #expect(stream.write([1]) == .closed)
        #expect(throws: RawConnection.Failure.self) { try readBody(connection) }
        #expect(eventually { closed.value == 1 })
    }
}
