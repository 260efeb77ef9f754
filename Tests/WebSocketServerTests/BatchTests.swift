import Foundation
import Synchronization
import TestSupport
import Testing

@testable import WebSocketServer

/// Several frames that are sent in one write.
@Suite(.exclusive) struct BatchTests {
    private final class Holder: Sendable {}

    /// The smallest buffers that the kernel allows, so that it accepts only parts of most writes.
    private static let smallBuffer: Int32 = 2048

    private static func payload(_ number: Int, _ length: Int) -> [UInt8] {
        (0..<length).map { UInt8(ascii: "a") + UInt8((number + $0) % 26) }
    }

    private static func large(frames: Int, compresses: Bool = false) -> WebSocketServer.Configuration {
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = frames
        configuration.offerQueueBytes = 16 * 1024 * 1024
        configuration.allowsCompression = compresses
        return configuration
    }

    private static func slowClient(_ fixture: Fixture) throws -> (WebSocketClient, WebSocketConnection) {
        let client = try WebSocketClient(port: fixture.port, receiveBuffer: smallBuffer)
        try #require(try client.shakeHands().status == 101)
        try #require(fixture.handler.waits { $0.open.count == 1 })
        return (client, fixture.handler.current.open[0])
    }

    @Test(arguments: [nil, smallBuffer]) func framesOfAllLengthsKeepTheirOrder(_ sendBuffer: Int32?) throws {
        let lengths = [
            0, 1, 125, 126, 127, 3000, 16_383, 16_384, 16_385, 5, 65_535, 65_536, 65_537, 0, 200_000, 7, 16_000, 384,
            385,
        ]
        let fixture = try Fixture(
            Self.large(frames: 100),
            handler: RecordingHandler(onMessage: { _, connection in
                for (number, length) in lengths.enumerated() {
                    let bytes = Self.payload(number, length)
                    let frame = number % 2 == 0 ? WebSocketFrame(utf8: bytes) : WebSocketFrame(binary: bytes)
                    #expect(connection.offer(frame) == .queued)
                }
            }),
            sendBuffer: sendBuffer
        )
        let client = try fixture.open()
        try client.sendText("go")
        for (number, length) in lengths.enumerated() {
            let bytes = Self.payload(number, length)
            let expected =
                number % 2 == 0 ? .text(String(decoding: bytes, as: UTF8.self)) : WebSocketClient.Event.binary(bytes)
            try #require(try client.receive() == expected, "frame \(number)")
        }
        #expect(eventually { fixture.server.statistics.messagesSent == lengths.count })
        #expect(fixture.server.statistics.bytesSent == lengths.reduce(0, +))
    }

    @Test func partialWritesKeepTheOrder() throws {
        let frames = 3000
        let fixture = try Fixture(Self.large(frames: frames), sendBuffer: Self.smallBuffer)
        let (client, connection) = try Self.slowClient(fixture)
        // Some frames begin a write, and others join those that wait.
        for number in 0..<frames {
            try #require(connection.offer(WebSocketFrame(binary: Self.payload(number, number % 700))) == .queued)
            if number % 500 == 0 { usleep(2000) }
        }
        for number in 0..<frames {
            try #require(try client.receive() == .binary(Self.payload(number, number % 700)), "frame \(number)")
        }
    }

    @Test func closeFollowsFramesThatTheSocketDidNotAccept() throws {
        let fixture = try Fixture(Self.large(frames: 400), sendBuffer: Self.smallBuffer)
        let (client, connection) = try Self.slowClient(fixture)
        for number in 0..<400 {
            try #require(connection.offer(WebSocketFrame(binary: Self.payload(number, 500))) == .queued)
        }
        connection.close(code: 4001, reason: "over")
        for number in 0..<400 {
            try #require(try client.receive() == .binary(Self.payload(number, 500)), "frame \(number)")
        }
        #expect(try client.receive() == .close(code: 4001, reason: "over"))
        try client.sendClose(code: 4001)
        #expect(fixture.handler.waits { $0.closes.values.first == 4001 })
    }

    @Test func pongsComeBetweenWholeFrames() throws {
        let frames = 1200
        let fixture = try Fixture(Self.large(frames: frames), sendBuffer: Self.smallBuffer)
        let (client, connection) = try Self.slowClient(fixture)
        var next = 0
        var pongs = 0
        for ping in 0..<12 {
            for number in 0..<100 {
                let payload = Self.payload(ping * 100 + number, 600)
                try #require(connection.offer(WebSocketFrame(binary: payload)) == .queued)
            }
            try client.sendPing([UInt8(ping)])
            // A client need not be answered for each of several pings (RFC 6455, 5.5.3).
            while pongs <= ping {
                switch try client.receive() {
                case .pong(let payload):
                    try #require(payload == [UInt8(ping)])
                    pongs += 1
                case let event:
                    try #require(event == .binary(Self.payload(next, 600)), "frame \(next)")
                    next += 1
                }
            }
        }
        while next < frames {
            try #require(try client.receive() == .binary(Self.payload(next, 600)), "frame \(next)")
            next += 1
        }
    }

    /// libwebsockets sends the close frame itself when it reads an invalid frame.
    @Test func noFrameFollowsTheCloseOfAProtocolError() throws {
        let fixture = try Fixture(Self.large(frames: 100_000))
        let client = try fixture.open()
        try #require(fixture.handler.waits { $0.open.count == 1 })
        let connection = fixture.handler.current.open[0]
        let isOver = Mutex(false)
        let offering = DispatchGroup()
        offering.enter()
        let thread = Thread {
            var number = 0
            while !isOver.withLock({ $0 }), connection.offer(WebSocketFrame(text: "\(number)")) == .queued {
                number += 1
                usleep(50)
            }
            offering.leave()
        }
        thread.start()
        for number in 0..<50 { try #require(try client.receive() == .text("\(number)")) }
        // A reserved opcode.
        try client.sendFrame(opcode: 3, payload: [])
        var next = 50
        while case .text(let text) = try client.receive() {
            try #require(text == "\(next)")
            next += 1
        }
        #expect(throws: (any Error).self) {
            // Nothing or the end of the connection, but no frame.
            _ = try client.receive(deadline: Date(timeIntervalSinceNow: 0.3))
        }
        isOver.withLock { $0 = true }
        #expect(offering.wait(timeout: .now() + 10) == .success)
    }

    @Test func equalFramesReachCompressedAndPlainConnections() throws {
        let fixture = try Fixture(Self.large(frames: 100, compresses: true))
        let plain = try (0..<5).map { _ in try fixture.open() }
        let compressed = try (0..<5).map { _ in
            try fixture.open(headers: [("Sec-WebSocket-Extensions", "permessage-deflate")])
        }
        try #require(fixture.handler.waits { $0.open.count == 10 })
        let payloads = (0..<3).map { [UInt8](repeating: $0, count: 1000) } + [[3]]
        let frames = payloads.map { WebSocketFrame(binary: $0) }
        for connection in fixture.handler.current.open.sorted(by: { $0.id % 3 < $1.id % 3 }) {
            for frame in frames { try #require(connection.offer(frame) == .queued) }
        }
        for client in plain {
            for payload in payloads { try #require(try client.receive() == .binary(payload)) }
        }
        let inflater = try #require(Inflater())
        for client in compressed {
            for payload in payloads {
                // The client ignores the mark.
                guard case .binary(let received) = try client.receive() else {
                    Issue.record("expected a binary message")
                    return
                }
                let isCompressed = Compression.frameLengths.contains(payload.count)
                #expect(received.count < 100)
                #expect(try isCompressed ? inflater.inflated(received, limit: 1000) == payload : received == payload)
            }
        }
    }

    @Test func holdersAreReleasedWhenTheSocketHasAcceptedTheFrames() throws {
        let fixture = try Fixture(Self.large(frames: 1000), sendBuffer: Self.smallBuffer)
        let (client, connection) = try Self.slowClient(fixture)
        let frame = WebSocketFrame(binary: Self.payload(0, 1000))
        weak var last: Holder?
        weak var first: Holder?
        do {
            for number in 0..<200 {
                let holder = Holder()
                if number == 0 { first = holder }
                if number == 199 { last = holder }
                try #require(connection.offer(frame, holding: holder) == .queued)
            }
        }
        #expect(!eventually(within: 0.2) { last == nil })
        for _ in 0..<100 { try #require(try client.receive() == .binary(Self.payload(0, 1000))) }
        #expect(eventually { first == nil })
        #expect(last != nil)
        for _ in 0..<100 { try #require(try client.receive() == .binary(Self.payload(0, 1000))) }
        #expect(eventually { last == nil })
    }

    @Test func holdersOfKeptBytesAreReleasedWithTheConnection() throws {
        let fixture = try Fixture(Self.large(frames: 1000), sendBuffer: Self.smallBuffer)
        weak var last: Holder?
        do {
            let (client, connection) = try Self.slowClient(fixture)
            for _ in 0..<16 {
                let holder = Holder()
                last = holder
                let frame = WebSocketFrame(binary: Self.payload(0, 1000))
                try #require(connection.offer(frame, holding: holder) == .queued)
            }
            #expect(!eventually(within: 0.2) { last == nil })
            _ = client
        }
        #expect(eventually { last == nil })
    }

    // MARK: - The queue

    @Test func batchIsLimitedByBytesAndFrames() {
        let connection = WebSocketConnection(
            id: 1,
            mailbox: Mailbox(maximumArrivals: 1),
            configuration: Self.large(frames: 100)
        )
        for length in [10, 20, 30, 100, 5, 5, 5] {
            _ = connection.offer(WebSocketFrame(binary: Self.payload(0, length)))
        }
        connection.close(code: 4000)
        var batch: [QueuedFrame] = []
        func next(atMost bytes: Int, _ count: Int) -> (item: WebSocketConnection.Item, lengths: [Int]) {
            batch = []
            let next = connection.next(afterSending: 0, atMost: bytes, count, into: &batch, isWritable: true)
            #expect(next.closeCode == 4000)
            return (next.item, batch.map(\.frame.count))
        }
        #expect(next(atMost: 59, 10).lengths == [10, 20])
        #expect(next(atMost: 59, 10).lengths == [30])
        guard case .long(let queued) = next(atMost: 59, 10).item else {
            Issue.record("expected a long frame")
            return
        }
        #expect(queued.frame.count == 100)
        #expect(next(atMost: 59, 2).lengths == [5, 5])
        guard case .batch(isLast: false) = next(atMost: 59, 2).item, case .close = next(atMost: 59, 2).item else {
            Issue.record("expected a frame and the close")
            return
        }
        #expect(connection.sentBytes == 75)
    }
}
