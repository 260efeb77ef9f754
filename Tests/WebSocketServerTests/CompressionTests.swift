import CWebSockets
import Foundation
import Synchronization
import TestSupport
import Testing
import WebSocketServer

@Suite(.exclusive) struct CompressionTests {
    private static let offer = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")

    private static func configuration() -> WebSocketServer.Configuration {
        var configuration = WebSocketServer.Configuration()
        configuration.allowsCompression = true
        return configuration
    }

    /// Returns a text that compresses well and is different for each length.
    private static func text(_ length: Int) -> String {
        let items = (0...length / 40).map { "{\"objectType\":\"com.example.Job\",\"length\":\(length * 7 + $0 * $0)}" }
        return String(items.joined().prefix(length))
    }

    /// Returns bytes that compress to half their length.
    private static func noise(_ length: Int) -> [UInt8] {
        (0..<length).map { _ in UInt8.random(in: 0..<16) }
    }

    /// The response parameters besides the fixed ones; nil if no extension is agreed on.
    @Test(arguments: [
        ("permessage-deflate", ""), ("permessage-deflate; client_max_window_bits=10", ""),
        ("permessage-deflate; client_max_window_bits=\"8\"", ""),
        ("permessage-deflate; server_no_context_takeover;client_no_context_takeover", ""),
        ("x-other, permessage-deflate; server_max_window_bits=15", "; server_max_window_bits=15"),
        ("permessage-deflate; server_max_window_bits=\"15\"", "; server_max_window_bits=15"),
        ("permessage-deflate; server_max_window_bits=15, permessage-deflate", ""),
        ("permessage-deflate; server_max_window_bits=9, permessage-deflate", ""),
        ("permessage-deflate; server_max_window_bits=9", nil), ("permessage-deflate; unknown", nil),
        ("permessage-deflate; server_max_window_bits", nil), ("permessage-deflate; server_max_window_bits=", nil),
        ("permessage-deflate; server_max_window_bits=+15", nil),
        ("permessage-deflate; server_max_window_bits=015", nil),
        ("permessage-deflate; server_max_window_bits=1\"5", nil),
        ("permessage-deflate; client_max_window_bits=", nil), ("permessage-deflate; client_max_window_bits=+9", nil),
        ("permessage-deflate; client_max_window_bits=09", nil),
        ("permessage-deflate; client_max_window_bits=\"9", nil),
        ("permessage-deflate; client_max_window_bits=16", nil), ("permessage-deflate-2", nil),
        ("permessage-deflate; client_no_context_takeover=", nil),
        ("permessage-deflate; client_max_window_bits; client_max_window_bits =9", nil),
    ]) func compressionOffersAreAcceptedIfSupported(_ offer: (text: String, added: String?)) throws {
        for allows in [true, false] {
            var configuration = Self.configuration()
            configuration.allowsCompression = allows
            configuration.closeTimeout = .milliseconds(50)
            let client = try Fixture(configuration).open(headers: [("Sec-WebSocket-Extensions", offer.text)])
            let agreed = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
            #expect(
                client.response.headers["sec-websocket-extensions"] == (allows ? offer.added.map { agreed + $0 } : nil)
            )
        }
    }

    @Test func messagesArriveWholeInBothDirections() throws {
        let fixture = try Fixture(Self.configuration())
        let client = try fixture.open(headers: [Self.offer])
        for length in Array(0..<200) + Array(1020...1030) + Array(3070...3100) + [4096, 16384, 65536] {
            let bytes = Array(Self.text(length).utf8)
            try client.sendFrame(opcode: 2, payload: deflated(bytes), isCompressed: true)
            let answer = try client.receivePayload()
            let payload = length < 128 ? answer : try #require(inflated(answer))
            try #require(payload == bytes, "at \(length)")
        }
        let text = Self.text(100) + "grüße"
        try client.sendFrame(opcode: 1, payload: deflated(Array(text.utf8)), isCompressed: true)
        #expect(try client.receive() == .text(text))
    }

    @Test func fragmentsAndPlainMessagesMix() throws {
        let fixture = try Fixture(Self.configuration())
        let client = try fixture.open(headers: [Self.offer])
        let bytes = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 / 7 ^ $0 >> 9) }
        let compressed = deflated(bytes)
        for size in [1, 100, 4096, compressed.count] {
            var rest = compressed[...]
            var isFirst = true
            while !rest.isEmpty {
                let piece = Array(rest.prefix(size))
                rest = rest.dropFirst(size)
                try client.sendFrame(
                    opcode: isFirst ? 2 : 0,
                    payload: piece,
                    isFinal: rest.isEmpty,
                    isCompressed: isFirst
                )
                isFirst = false
            }
            try client.sendText("plain")
            #expect(inflated(try client.receivePayload()) == bytes)
            #expect(try client.receive() == .text("plain"))
        }
    }

    @Test(arguments: [(127, false), (128, true), (64 * 1024, true), (64 * 1024 + 1, false), (1_000_000, false)])
    func framesOfSomeLengthsAreCompressed(_ frame: (length: Int, isCompressed: Bool)) throws {
        let bytes = Self.noise(frame.length)
        let fixture = try Fixture(
            Self.configuration(),
            handler: RecordingHandler(onMessage: { _, connection in
                #expect(connection.offer(WebSocketFrame(binary: bytes)) == .queued)
            })
        )
        let client = try fixture.open(headers: [Self.offer])
        let plain = try fixture.open()
        try client.sendText("go")
        try plain.sendText("go")
        let answer = try client.receivePayload()
        #expect((frame.isCompressed ? inflated(answer) : answer) == bytes)
        #expect(try plain.receive() == .binary(bytes))
    }

    /// Compression is most of the work for a connection, but the size of the sent data hardly shows it.
    @Test func uncompressedSizeCountsTowardsTheTurn() throws {
        var configuration = Self.configuration()
        configuration.offerQueueFrames = 16
        configuration.offerQueueBytes = 2 * 1024 * 1024
        let server = Mutex<WebSocketServer?>(nil)
        let sent = Mutex<Int?>(nil)
        let handler = RecordingHandler(
            onMessage: { _, connection in
                while connection.offer(WebSocketFrame(utf8: [UInt8](repeating: 0x78, count: 64 * 1024))) == .queued {}
            },
            // Called when half of the frames have been taken. Messages sent in a turn are counted at its end.
            onDrained: { _ in sent.withLock { $0 = server.withLock { $0 }?.statistics.messagesSent } }
        )
        let fixture = try Fixture(configuration, handler: handler)
        server.withLock { $0 = fixture.server }
        defer { server.withLock { $0 = nil } }
        let client = try fixture.open(headers: [Self.offer])
        try client.sendText("go")
        for _ in 0..<16 {
            guard case .text = try client.receive() else {
                Issue.record("expected a text message")
                return
            }
        }
        #expect(sent.withLock { $0 } == 4)
    }

    @Test func limitAppliesToCompressedAndInflatedSize() throws {
        var configuration = Self.configuration()
        configuration.maximumMessageSize = 10_000
        let fixture = try Fixture(configuration)
        let text = Array(Self.text(10_001).utf8)
        let noise = (0..<20_000).map { _ in UInt8.random(in: 0...255) }
        for refused in [deflated(text), noise] {
            let client = try fixture.open(headers: [Self.offer])
            try client.sendFrame(opcode: 2, payload: deflated(Array(text.dropLast())), isCompressed: true)
            #expect(inflated(try client.receivePayload()) == text.dropLast())
            try client.sendFrame(opcode: 2, payload: refused, isCompressed: true)
            #expect(try client.receive() == .close(code: 1009, reason: "message too big"))
        }
        #expect(fixture.handler.current.messages.count == 2)
    }

    /// The messages are a thousand times larger after decompression.
    @Test func highlyCompressedMessageCloses() throws {
        var configuration = Self.configuration()
        configuration.maximumMessageSize = 8 * 1024 * 1024
        let fixture = try Fixture(configuration)
        for length in [8193, 1_000_000, 8_000_000] {
            let client = try fixture.open(headers: [Self.offer])
            try client.sendFrame(opcode: 2, payload: deflated([UInt8](repeating: 0, count: 8192)), isCompressed: true)
            #expect(inflated(try client.receivePayload())?.count == 8192)
            try client.sendFrame(opcode: 2, payload: deflated([UInt8](repeating: 0, count: length)), isCompressed: true)
            #expect(try client.receive() == .close(code: 1009, reason: "message too big"))
        }
        #expect(fixture.handler.current.messages.count == 3)
    }

    /// Empty blocks, of which some end a stream and others do not.
    @Test(arguments: [[0x03, 0x00], [0x00, 0x00, 0x00, 0xff, 0xff]] as [[UInt8]])
    func emptyBlocksCountTowardsTheLimit(_ block: [UInt8]) throws {
        let fixture = try Fixture(Self.configuration())
        let client = try fixture.open(headers: [Self.offer])
        let most = WebSocketServer.Configuration().maximumMessageSize / block.count - 1
        let blocks = [[UInt8]](repeating: block, count: most).flatMap { $0 }
        try client.sendFrame(opcode: 2, payload: blocks + deflated([]), isCompressed: true)
        #expect(try client.receive() == .binary([]))
        try client.sendFrame(opcode: 2, payload: blocks, isFinal: false, isCompressed: true)
        try client.sendFrame(opcode: 0, payload: blocks, isFinal: false, isCompressed: false)
        #expect(try client.receive() == .close(code: 1009, reason: "message too big"))
    }

    @Test func streamMayEndAmidAMessage() throws {
        let fixture = try Fixture(Self.configuration())
        let client = try fixture.open(headers: [Self.offer])
        // The examples of RFC 7692, 7.2.3.4 and 7.2.3.1, one after the other.
        let hello: [UInt8] = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]
        try client.sendFrame(opcode: 1, payload: hello, isCompressed: true)
        #expect(try client.receive() == .text("HelloHello"))
    }

    @Test func badInputCloses() throws {
        let fixture = try Fixture(Self.configuration())
        let inputs: [([UInt8], Bool)] = [
            ([0xff, 0xff, 0xff, 0xff], true), (deflated([0x66, 0xc3, 0x28]), true), ([0x66, 0xc3, 0x28], false),
        ]
        for (payload, isCompressed) in inputs {
            let client = try fixture.open(headers: [Self.offer])
            try client.sendFrame(opcode: 1, payload: payload, isCompressed: isCompressed)
            guard case .close(code: 1007, _) = try client.receive() else {
                Issue.record("expected close code 1007")
                return
            }
        }
        let badReason = try fixture.open(headers: [Self.offer])
        try badReason.sendFrame(opcode: 8, payload: [0x03, 0xe8, 0xc3, 0x28])
        #expect(badReason.isEnded())
        #expect(fixture.handler.current.messages.isEmpty)
    }

    @Test func compressionMarkWithoutAgreementCloses() throws {
        let fixture = try Fixture(Self.configuration())
        let client = try fixture.open()
        try client.sendFrame(opcode: 2, payload: deflated([1, 2, 3]), isCompressed: true)
        guard case .close(code: 1002, _) = try client.receive() else {
            Issue.record("expected close code 1002")
            return
        }
    }

    /// The mark is only valid in the first frame of a message.
    @Test(arguments: [(0, "x"), (0, ""), (10, "x"), (8, ""), (8, "\u{3}\u{e8}")] as [(UInt8, String)])
    func misplacedCompressionMarkCloses(_ frame: (opcode: UInt8, payload: String)) throws {
        let bytes = deflated(Array(Self.text(20_000).utf8))
        for isCompressed in [true, false] {
            let fixture = try Fixture(Self.configuration())
            let client = try fixture.open(headers: [Self.offer])
            try client.sendFrame(opcode: 2, payload: bytes, isFinal: false, isCompressed: isCompressed)
            let payload = frame.payload.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
            try client.sendFrame(opcode: frame.opcode, payload: payload, isCompressed: true)
            #expect(try client.receive() == .close(code: 1002, reason: "rsv bits"))
            if frame.opcode != 8 {
                try client.sendClose(code: 1002)
            }
            #expect(fixture.handler.waits { Array($0.closes.values) == [1002] })
            #expect(fixture.handler.current.messages.isEmpty)
        }
    }

    @Test func slowReaderReceivesAllFrames() throws {
        let next = Mutex(0)
        let refusals = Mutex(0)
        let total = 600
        let body = Self.noise(8000)
        let go: @Sendable (WebSocketConnection) -> Void = { connection in
            next.withLock { number in
                while number < total {
                    guard connection.offer(WebSocketFrame(binary: Array("\(number) ".utf8) + body)) == .queued else {
                        refusals.withLock { $0 += 1 }
                        return
                    }
                    number += 1
                }
            }
        }
        let fixture = try Fixture(
            Self.configuration(),
            handler: RecordingHandler(onMessage: { _, connection in go(connection) }, onDrained: go)
        )
        let client = try WebSocketClient(port: fixture.port, receiveBuffer: 4096)
        try #require(try client.shakeHands(headers: [Self.offer]).status == 101)
        try client.sendText("go")
        try #require(eventually { refusals.withLock { $0 } > fixture.handler.current.drains })
        for number in 0..<total {
            try #require(inflated(try client.receivePayload()) == Array("\(number) ".utf8) + body)
        }
        #expect(refusals.withLock { $0 } == fixture.handler.current.drains)
    }
}

/// Returns the compressed payload of a message.
private func deflated(_ bytes: [UInt8]) -> [UInt8] {
    var input = bytes
    var stream = z_stream()
    guard cws_deflate_begin(&stream) == Z_OK else { return [] }
    defer { deflateEnd(&stream) }
    return input.withUnsafeMutableBufferPointer { input in
        [UInt8](unsafeUninitializedCapacity: input.count + 1024) { output, count in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            deflate(&stream, Z_SYNC_FLUSH)
            count = output.count - Int(stream.avail_out) - 4
        }
    }
}

/// Returns the decompressed payload; nil if it is malformed or larger than four megabytes.
private func inflated(_ bytes: [UInt8]) -> [UInt8]? {
    var input = bytes + [0, 0, 0xff, 0xff]
    var stream = z_stream()
    guard cws_inflate_begin(&stream) == Z_OK else { return nil }
    defer { inflateEnd(&stream) }
    return input.withUnsafeMutableBufferPointer { input in
        var result = Z_OK
        let output = [UInt8](unsafeUninitializedCapacity: 4_000_000) { output, count in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            result = inflate(&stream, Z_SYNC_FLUSH)
            count = output.count - Int(stream.avail_out)
        }
        return result == Z_OK || result == Z_BUF_ERROR ? output : nil
    }
}

extension WebSocketClient {
    /// Receives a binary message, and returns its payload without decompression.
    fileprivate func receivePayload() throws -> [UInt8] {
        let event = try receive()
        guard case .binary(let payload) = event else { throw Failure.malformed("\(event)") }
        return payload
    }

    fileprivate func sendFrame(
        opcode: UInt8,
        payload: [UInt8],
        isFinal: Bool = true,
        isCompressed: Bool
    ) throws {
        try sendFrame(opcode: opcode | (isCompressed ? 0x40 : 0), payload: payload, isFinal: isFinal)
    }
}
