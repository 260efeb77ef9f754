import Foundation
import Synchronization
import TestSupport
import Testing
import WebSocketServer

@Suite(.exclusive) struct MessageTests {
    @Test(arguments: [0, 1, 125, 126, 4095, 4096, 4097, 65535, 65536])
    func echoes(_ length: Int) throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        let text = String(repeating: "x", count: length)
        try client.sendText(text)
        #expect(try client.receive() == .text(text))
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        try client.sendBinary(bytes)
        #expect(try client.receive() == .binary(bytes))
        #expect(fixture.handler.current.messages == [.text(text), .binary(bytes)])
        let statistics = fixture.server.statistics
        #expect(statistics.messagesReceived == 2)
        #expect(statistics.bytesReceived == 2 * length)
    }

    @Test func sendsFramesLongerThanTheSocketTakes() throws {
        let payload = [UInt8](repeating: 7, count: 8 * 1024 * 1024)
        let frame = WebSocketFrame(binary: payload)
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueBytes = 2 * payload.count + 3
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(onMessage: { _, connection in
                for frame in [frame, WebSocketFrame(text: "end"), frame] {
                    #expect(connection.offer(frame) == .queued)
                }
            })
        )
        let client = try fixture.open()
        try client.sendText("go")
        #expect(try client.receive() == .binary(payload))
        #expect(try client.receive() == .text("end"))
        #expect(try client.receive() == .binary(payload))
        #expect(fixture.server.statistics.bytesSent == 2 * payload.count + 3)
    }

    @Test func fragmentsAreOneMessage() throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        try client.sendFrame(opcode: 1, payload: Array("grü".utf8.dropLast(1)), isFinal: false)
        try client.sendPing([1])
        try client.sendFrame(opcode: 0, payload: Array("grü".utf8.suffix(1)), isFinal: false)
        try client.sendFrame(opcode: 0, payload: [], isFinal: false)
        try client.sendFrame(opcode: 0, payload: Array("ße".utf8))
        #expect(try client.receive() == .pong([1]))
        #expect(try client.receive() == .text("grüße"))
        #expect(fixture.handler.current.messages.count == 1)
    }

    @Test(arguments: [true, false]) func messageOverTheLimitCloses(_ fragmented: Bool) throws {
        var configuration = WebSocketServer.Configuration()
        configuration.maximumMessageSize = 10_000
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        let limit = [UInt8](repeating: 1, count: 10_000)
        try client.sendBinary(limit)
        #expect(try client.receive() == .binary(limit))
        if fragmented {
            try client.sendFrame(opcode: 2, payload: limit, isFinal: false)
            try client.sendFrame(opcode: 0, payload: [1])
        } else {
            try client.sendBinary([UInt8](repeating: 1, count: 100_000))
        }
        #expect(try client.receive() == .close(code: 1009, reason: "message too big"))
        try client.sendClose(code: 1009)
        #expect(client.isEnded())
        #expect(fixture.handler.waits { $0.closes.values.first == 1009 })
        #expect(fixture.handler.current.messages.count == 1)
    }

    /// Reading the rest would delay other connections, and a peer could occupy the server until the close times out.
    @Test func restOfARefusedMessageIsNotRead() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.maximumMessageSize = 10_000
        configuration.closeTimeout = .seconds(1)
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        let length = 256 << 20
        let head: [UInt8] =
            [0x82, 0xff] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) } + [0, 0, 0, 0]
        let part = [UInt8](repeating: 1, count: 1 << 20)
        try client.sendRaw(head + part.prefix(100_000))
        #expect(try client.receive() == .close(code: 1009, reason: "message too big"))
        var taken = 0
        do {
            while taken < length - part.count {
                try client.sendRaw(part)
                taken += part.count
            }
        } catch {}
        // The capacity of the socket buffers on both sides.
        #expect(taken < 64 << 20)
        #expect(fixture.handler.waits { $0.closes.values.first == 1009 })
    }

    @Test func textThatIsNotUTF8Closes() throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        try client.sendFrame(opcode: 1, payload: [0x66, 0xc3, 0x28])
        guard case .close(code: 1007, _) = try client.receive() else {
            Issue.record("expected close code 1007")
            return
        }
        #expect(fixture.handler.current.messages.isEmpty)
    }

    @Test func pingIsAnswered() throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        try client.sendPing([1, 2, 3])
        #expect(try client.receive() == .pong([1, 2, 3]))
    }

    @Test func pingsThatAreAnsweredKeepTheConnection() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.pingInterval = .seconds(1)
        configuration.pongTimeout = .seconds(1)
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        for _ in 0..<3 {
            let event = try client.receive()
            guard case .ping(let payload) = event else {
                Issue.record("\(event) is not a ping")
                return
            }
            try client.sendPong(payload)
        }
        try client.sendText("alive")
        #expect(try client.receive() == .text("alive"))
    }

    @Test func peerThatAnswersNoPingIsClosed() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.pingInterval = .seconds(1)
        configuration.pongTimeout = .seconds(1)
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        guard case .ping = try client.receive() else {
            Issue.record("expected a ping")
            return
        }
        #expect(try client.receive() == .close(code: 1008, reason: "neither pings are answered nor messages read"))
        #expect(client.isEnded())
        #expect(fixture.handler.waits { $0.closes.values.first == 1008 })
        #expect(fixture.server.statistics.open == 0)
    }

    @Test func unfinishedMessageEndsAtItsDeadline() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.messageTimeout = .seconds(1)
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        // The timer of a message that was completed in time must not end the next one.
        try client.sendFrame(opcode: 2, payload: [1], isFinal: false)
        usleep(500_000)
        try client.sendFrame(opcode: 0, payload: [2])
        #expect(try client.receive() == .binary([1, 2]))
        try client.sendFrame(opcode: 2, payload: [3], isFinal: false)
        usleep(700_000)
        try client.sendFrame(opcode: 0, payload: [4])
        #expect(try client.receive() == .binary([3, 4]))
        // The time limit applies even if bytes keep arriving.
        try client.sendFrame(opcode: 2, payload: [5], isFinal: false)
        let began = ContinuousClock.now
        var event: WebSocketClient.Event?
        while event == nil, .now - began < .seconds(5) {
            try? client.sendFrame(opcode: 0, payload: [6], isFinal: false)
            event = try? client.receive(deadline: Date(timeIntervalSinceNow: 0.1))
        }
        #expect(event == .close(code: 1008, reason: "message not complete in time"))
        #expect(.now - began > .milliseconds(900))
    }

    /// A budget of 64 KiB.
    private final class Budget: WebSocketServer.ByteBudget {
        private let state = Mutex((taken: 0, steps: [Int]()))
        var taken: Int { state.withLock { $0.taken } }
        var steps: [Int] { state.withLock { $0.steps } }

        func take(_ bytes: Int) -> Bool {
            state.withLock { state in
                state.steps.append(bytes)
                guard state.taken + bytes <= 64 * 1024 else { return false }
                state.taken += bytes
                return true
            }
        }

        func give(_ bytes: Int) { state.withLock { $0.taken -= bytes } }
    }

    @Test func unfinishedMessagesTakeTheirMemoryFromABudget() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.maximumMessageSize = 1024 * 1024
        let budget = Budget()
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(refusal: { _ in .accept { $0.budget = budget } })
        )
        let small = try fixture.open()
        try small.sendText("small")
        #expect(try small.receive() == .text("small"))
        #expect(budget.steps.isEmpty)
        let part = [UInt8](repeating: 1, count: 20 * 1024)
        do {
            let client = try fixture.open()
            try client.sendFrame(opcode: 2, payload: part, isFinal: false)
            #expect(eventually { budget.taken == 32 * 1024 })
            try client.sendFrame(opcode: 0, payload: [2])
            #expect(try client.receive() == .binary(part + [2]))
            #expect(eventually { budget.taken == 0 })
            try client.sendFrame(opcode: 2, payload: part, isFinal: false)
            #expect(eventually { budget.taken == 32 * 1024 })
            try small.sendFrame(opcode: 2, payload: part + part, isFinal: false)
            #expect(try small.receive() == .close(code: 1013, reason: "no memory for this message now"))
            #expect(eventually { budget.taken == 32 * 1024 })
        }
        #expect(eventually { budget.taken == 0 })
        #expect(budget.steps.allSatisfy { $0 > 0 && $0 % (16 * 1024) == 0 })
    }
}
