import Foundation
import Synchronization
import TestSupport
import Testing
import WebSocketServer

@Suite(.exclusive) struct BroadcastTests {
    /// Long enough that the sockets of a client that does not read, and then its queue, fill up.
    private static let frames = 500
    private static let frameLength = 16 * 1024

    @Test func stuckReaderDoesNotDelayOthers() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .milliseconds(200)
        configuration.offerQueueBytes = 64 * Self.frameLength
        let fixture = try Fixture(configuration)
        let stuck = try WebSocketClient(port: fixture.port, receiveBuffer: 4096)
        try #require(try stuck.shakeHands().status == 101)
        let readers = try (0..<199).map { _ in try fixture.open() }
        #expect(fixture.handler.waits { $0.open.count == 200 })
        let connections = fixture.handler.current.open

        // At most half a queue is offered ahead of the slowest reading client, so only the queue of the stuck client
        // fills up.
        let progress = Mutex([Int](repeating: 0, count: readers.count))
        let failures = Mutex<[String]>([])
        let reading = DispatchGroup()
        for part in 0..<4 {
            reading.enter()
            let mine = Sending(readers.enumerated().filter { $0.offset % 4 == part }.map { ($0.offset, $0.element) })
            let thread = Thread {
                do {
                    for number in 0..<Self.frames {
                        for (index, reader) in mine.value {
                            guard case .text(let text) = try reader.receive(deadline: Date(timeIntervalSinceNow: 60)),
                                text.hasPrefix("\(number) "), text.utf8.count == Self.frameLength
                            else {
                                failures.withLock { $0.append("reader \(index) got another frame than \(number)") }
                                reading.leave()
                                return
                            }
                            progress.withLock { $0[index] = number + 1 }
                        }
                    }
                } catch {
                    failures.withLock { $0.append("\(error)") }
                }
                reading.leave()
            }
            thread.start()
        }

        var full: Set<UInt64> = []
        for number in 0..<Self.frames {
            let head = "\(number) "
            let frame = WebSocketFrame(text: head + String(repeating: "x", count: Self.frameLength - head.utf8.count))
            full.formUnion(connections.filter { $0.offer(frame) != .queued }.map(\.id))
            let keptUp = eventually {
                failures.withLock { !$0.isEmpty } || progress.withLock { ($0.min() ?? 0) > number - 32 }
            }
            try #require(keptUp, "frame \(number) was delayed")
        }
        #expect(reading.wait(timeout: .now() + 60) == .success)
        #expect(failures.withLock { $0 } == [])
        #expect(full.count == 1)
        #expect(fixture.server.statistics.open == 200)
        #expect(fixture.server.statistics.messagesSent >= 199 * Self.frames)
    }

    @Test func manyThreadsSendToMany() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = 200
        let fixture = try Fixture(configuration)
        let clients = try (0..<10).map { _ in try fixture.open() }
        #expect(fixture.handler.waits { $0.open.count == 10 })
        let connections = fixture.handler.current.open
        let sending = DispatchGroup()
        for sender in 0..<4 {
            sending.enter()
            let thread = Thread {
                for number in 0..<50 {
                    let frame = WebSocketFrame(text: "\(sender) \(number)")
                    for connection in connections {
                        #expect(connection.offer(frame) == .queued)
                    }
                }
                sending.leave()
            }
            thread.start()
        }
        for client in clients {
            var next = [0, 0, 0, 0]
            for _ in 0..<200 {
                guard case .text(let text) = try client.receive() else {
                    Issue.record("expected a text message")
                    return
                }
                let parts = text.split(separator: " ").compactMap { Int($0) }
                try #require(parts.count == 2)
                #expect(parts[1] == next[parts[0]])
                next[parts[0]] += 1
            }
            #expect(next == [50, 50, 50, 50])
        }
        #expect(sending.wait(timeout: .now() + 10) == .success)
    }

    /// libwebsockets keeps a copy of data that it has received and the sockets have not accepted.
    @Test func longFrameIsNotCopiedForReadersThatDoNotRead() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .milliseconds(200)
        let fixture = try Fixture(configuration)
        let stuck = try (0..<8).map { _ in try WebSocketClient(port: fixture.port, receiveBuffer: 4096) }
        for client in stuck {
            try #require(try client.shakeHands().status == 101)
        }
        try #require(fixture.handler.waits { $0.open.count == 8 })
        let reader = try fixture.open()
        try #require(fixture.handler.waits { $0.open.count == 9 })
        let payload = (0..<10_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 16) }
        let frame = WebSocketFrame(binary: payload)
        for connection in fixture.handler.current.open {
            // The frame is larger than a queue, but accepted because the queue is empty.
            try #require(connection.offer(frame) == .queued)
        }
        #expect(try reader.receive() == .binary(payload))
        #expect(eventually { fixture.server.statistics.messagesSent > 0 })
        #expect(fixture.server.statistics.messagesSent == 1)
        // By default, Linux lets a socket hold up to 4 MiB.
        #expect(fixture.server.statistics.bytesSent < payload.count + stuck.count * 512 * 1024)
    }

    /// A reading client gets its turn although the sockets of earlier connections stay full.
    @Test func longFramesReachManyReadersInAnyOrder() throws {
        let fixture = try Fixture()
        let clients = try (0..<24).map { _ in try fixture.open() }
        try #require(fixture.handler.waits { $0.open.count == clients.count })
        let text = String(repeating: "x", count: 8_000_000)
        for connection in fixture.handler.current.open {
            try #require(connection.offer(WebSocketFrame(text: text)) == .queued)
        }
        for client in clients.reversed() {
            try #require(try client.receive() == .text(text))
        }
        #expect(fixture.server.statistics.messagesSent == clients.count)
    }

    @Test func closeComesAfterTheFrameUnderWay() throws {
        let text = String(repeating: "ü", count: 5_000_000)
        let frame = WebSocketFrame(text: text)
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .seconds(20)
        let fixture = try Fixture(configuration)
        let client = try WebSocketClient(port: fixture.port, receiveBuffer: 65536)
        try #require(try client.shakeHands().status == 101)
        try #require(fixture.handler.waits { $0.open.count == 1 })
        let connection = fixture.handler.current.open[0]
        try #require(connection.offer(frame) == .queued)
        try #require(eventually { fixture.server.statistics.bytesSent > 0 })
        // The frame counts until it is sent.
        #expect(connection.offer(WebSocketFrame(text: "x")) == .full)
        connection.close(code: 4001)
        #expect(try client.receive() == .text(text))
        #expect(try client.receive() == .close(code: 4001, reason: ""))
        try client.sendClose(code: 4001)
        #expect(fixture.handler.waits { $0.closes.values.first == 4001 })
        #expect(fixture.server.statistics.messagesSent == 1)
    }
}

/// `@unchecked Sendable`: a value is passed to one thread, and its creator does not use it afterwards.
private struct Sending<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
