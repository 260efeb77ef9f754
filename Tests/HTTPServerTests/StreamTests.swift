import Dispatch
import Glibc
import HTTPServer
import TestSupport
import Testing

@Suite(.exclusive) struct StreamTests {
    let streams = Box<[HTTPStream]>([])
    let closed = Box(0)

    private func makeServer(_ configuration: HTTPServer.Configuration = .init()) throws -> TestServer {
        let (streams, closed) = (streams, closed)
        return try TestServer(configuration) { router in
            router.on(.get, "/stream") { _ in
                .stream(status: 200, headers: [("Content-Type", "text/event-stream")]) { stream in
                    stream.onClose { closed.update { $0 += 1 } }
                    streams.update { $0.append(stream) }
                }
            }
        }
    }

    private func open(_ server: TestServer, receiveBuffer: Int32? = nil) throws -> (RawConnection, HTTPStream) {
        let connection = try server.connect(receiveBuffer: receiveBuffer)
        try connection.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
        let (status, headers) = try connection.readHead()
        #expect(status == 200)
        #expect(headers["content-type"] == "text/event-stream")
        #expect(eventually { !streams.value.isEmpty })
        return (connection, try #require(streams.value.last))
    }

    @Test func sendsChunksAsTheyAreWritten() throws {
        let server = try makeServer()
        let (connection, stream) = try open(server)
        for index in 0..<100 {
            #expect(stream.write(Array("event \(index)\n".utf8)) == .queued)
            #expect(String(decoding: try connection.readChunk(), as: UTF8.self) == "event \(index)\n")
        }
        #expect(stream.write(Array("last".utf8)) == .queued)
        stream.finish()
        #expect(stream.write([1]) == .closed)
        #expect(String(decoding: try connection.readChunk(), as: UTF8.self) == "last")
        #expect(try connection.readChunk().isEmpty)
        #expect(eventually { stream.isClosed && closed.value == 1 })
        #expect(server.http.statistics.streams == 0)
        // The connection can still be used.
        try connection.send("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try connection.readResponse().status == 404)
    }

    @Test func keepsOrderUnderLoad() throws {
        let server = try makeServer()
        let (connection, stream) = try open(server)
        var received: [UInt8] = []
        var sent: [UInt8] = []
        for index in 0..<5000 {
            let bytes = Array("\(index),".utf8)
            while stream.write(bytes) == .full { received += try connection.readChunk() }
            sent += bytes
        }
        stream.finish()
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { received += chunk }
        #expect(received == sent)
    }

    @Test func slowReaderFillsTheQueue() throws {
        var configuration = HTTPServer.Configuration()
        configuration.streamQueueSize = 64 * 1024
        let server = try makeServer(configuration)
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        let bytes = [UInt8](repeating: 7, count: 16 * 1024)
        var written = 0
        #expect(
            eventually {
                guard stream.write(bytes) == .queued else { return true }
                written += bytes.count
                return false
            }
        )
        // By default, Linux lets a socket hold up to 4 MiB.
        #expect(written < 512 * 1024)
        #expect(stream.write([UInt8](repeating: 0, count: 64 * 1024 + 1)) == .full)
        #expect(!stream.isClosed)
        stream.finish()
        var received = 0
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { received += chunk.count }
        #expect(received == written)
    }

    @Test func readerThatReadsNothingIsDisconnected() throws {
        var configuration = HTTPServer.Configuration()
        configuration.connectionTimeout = 1
        let server = try makeServer(configuration)
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        #expect(eventually { stream.write([UInt8](repeating: 7, count: 16 * 1024)) == .full })
        #expect(eventually { stream.isClosed && closed.value == 1 })
        withExtendedLifetime(connection) {}
    }

    @Test func everyFullWriteIsFollowedByOneCall() throws {
        var configuration = HTTPServer.Configuration()
        configuration.streamQueueSize = 4096
        let server = try makeServer(configuration)
        let (connection, stream) = try open(server)
        let total = 4 * 1024 * 1024
        let received = Box(0)
        let reading = DispatchGroup()
        let reader = Sending(connection)
        // Not before the first refusal: on a busy machine, the server may otherwise always be faster than this thread.
        let isRefused = DispatchSemaphore(value: 0)
        runBeside(reading) {
            isRefused.wait()
            while let count = try? reader.value.readChunk().count, count > 0 { received.update { $0 += count } }
        }
        let room = DispatchSemaphore(value: 0)
        let calls = Box(0)
        stream.onRoom {
            calls.update { $0 += 1 }
            room.signal()
        }
        var refusals = 0
        // Every write of this thread competes with the server; every eighth write fills the queue.
        for number in 0..<(total / 1024) {
            let bytes = [UInt8](repeating: 7, count: number % 8 == 0 ? 8192 : 1024)
            var result = stream.write(bytes)
            while result == .full {
                refusals += 1
                if refusals == 1 { isRefused.signal() }
                try #require(room.wait(timeout: .now() + 10) == .success, "no onRoom call after refusal \(refusals)")
                result = stream.write(bytes)
            }
            try #require(result == .queued)
        }
        if refusals == 0 { isRefused.signal() }
        stream.finish()
        #expect(reading.wait(timeout: .now() + 10) == .success)
        #expect(received.value == total / 8 * 15)
        #expect(refusals > 0)
        #expect(calls.value == refusals)
    }

    @Test func roomHandlerMayWrite() throws {
        let server = try makeServer()
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        let bytes = [UInt8](repeating: 7, count: 16 * 1024)
        let written = Box(0)
        let fill: @Sendable () -> Void = { [weak stream] in
            while let stream, written.value < 300 {
                guard stream.write(bytes) == .queued else { return }
                written.update { $0 += 1 }
            }
            stream?.finish()
        }
        stream.onRoom(fill)
        fill()
        #expect(written.value < 300)
        var received = 0
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { received += chunk.count }
        #expect(received == 300 * bytes.count)
    }

    /// The kernel holds all written data, and the server has nothing left to send.
    @Test func clientThatTakesNothingFromTheKernelIsDisconnected() throws {
        var configuration = HTTPServer.Configuration()
        configuration.connectionTimeout = 1
        configuration.streamQueueSize = 0
        let server = try makeServer(configuration)
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        #expect(stream.write([UInt8](repeating: 7, count: 64 * 1024)) == .queued)
        // The write succeeds when nothing is queued any more.
        #expect(eventually { stream.write([7]) == .queued })
        #expect(
            eventually {
                usleep(100_000)
                return stream.write([1]) == .closed
            }
        )
        #expect(eventually { closed.value == 1 })
        withExtendedLifetime(connection) {}
    }

    @Test func clientDisconnectClosesTheStream() throws {
        let server = try makeServer()
        do { _ = try open(server) }
        let stream = try #require(streams.value.first)
        #expect(eventually { stream.isClosed })
        #expect(stream.write([1]) == .closed)
        #expect(eventually { closed.value == 1 && server.http.statistics.connections == 0 })
        let late = Box(false)
        stream.onClose { late.update { $0 = true } }
        #expect(late.value)
    }

    @Test func lastBytesAreQueuedEvenIfTheQueueIsFull() throws {
        var configuration = HTTPServer.Configuration()
        configuration.streamQueueSize = 1000
        let server = try makeServer(configuration)
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        var sent = 0
        let part = [UInt8](repeating: UInt8(ascii: "x"), count: 1000)
        while stream.write(part) == .queued { sent += part.count }
        stream.finish(with: Array("end".utf8))
        #expect(stream.write(part) == .closed)
        var body: [UInt8] = []
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { body += chunk }
        #expect(body.count == sent + 3 && body.suffix(3) == Array("end".utf8))
    }

    @Test func stopEndsStreams() throws {
        let server = try makeServer()
        let (connection, stream) = try open(server)
        #expect(stream.write(Array("before".utf8)) == .queued)
        server.http.stop()
        #expect(String(decoding: try connection.readChunk(), as: UTF8.self) == "before")
        #expect(try connection.readChunk().isEmpty)
        #expect(try connection.isClosedByPeer())
        #expect(stream.isClosed)
        #expect(closed.value == 1)
    }

    @Test func stopDoesNotWaitForAReaderThatReadsNothing() throws {
        var configuration = HTTPServer.Configuration()
        configuration.stopTimeout = .milliseconds(100)
        let server = try makeServer(configuration)
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        #expect(eventually { stream.write([UInt8](repeating: 7, count: 16 * 1024)) == .full })
        server.http.stop()
        #expect(stream.isClosed)
        withExtendedLifetime(connection) {}
    }

    @Test func answersHEADWithoutAStream() throws {
        let server = try makeServer()
        let response = try server.request("HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n", toHead: true)
        #expect(response.status == 200)
        #expect(streams.value.isEmpty)
    }

    @Test func refusesMoreThanItsBound() throws {
        var configuration = HTTPServer.Configuration()
        configuration.maximumStreams = 1
        let server = try makeServer(configuration)
        let (connection, _) = try open(server)
        #expect(try server.get("/stream").status == 503)
        #expect(streams.value.count == 1)
        withExtendedLifetime(connection) {}
    }
}

/// `@unchecked Sendable`: a value is passed to one thread, and its creator does not use it afterwards.
private struct Sending<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

extension StreamTests {
    private final class Holder: Sendable {}

    @Test func holderIsReleasedWhenItsPartsAreSent() throws {
        let server = try makeServer()
        let (connection, stream) = try open(server, receiveBuffer: 4096)
        let body = [UInt8](repeating: 7, count: 4 * 1024 * 1024)
        weak var held: Holder?
        weak var refused: Holder?
        do {
            let (first, second) = (Holder(), Holder())
            (held, refused) = (first, second)
            #expect(stream.write([[1], [], body, []], holding: first) == .queued)
            #expect(stream.write([[2], body], holding: second) == .full)
        }
        #expect(held != nil && refused == nil)
        stream.finish()
        var received: [UInt8] = []
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { received += chunk }
        #expect(received == [1] + body)
        #expect(eventually { held == nil })
    }

    @Test func holderIsReleasedWithTheConnection() throws {
        let server = try makeServer()
        weak var held: Holder?
        do {
            let (connection, stream) = try open(server, receiveBuffer: 4096)
            let holder = Holder()
            held = holder
            #expect(stream.write([[UInt8](repeating: 7, count: 8 * 1024 * 1024)], holding: holder) == .queued)
            withExtendedLifetime(connection) {}
        }
        #expect(eventually { held == nil })
    }
}
