import Foundation
import Synchronization
import TestSupport
import Testing
import WebSocketServer

@Suite(.exclusive) struct OfferTests {
    /// Offers numbered frames until one is refused, and continues when there is room.
    private final class Streamer: Sendable {
        let frames: Int
        let length: Int
        private let state = Mutex((next: 0, refusals: 0))

        init(frames: Int, length: Int) {
            self.frames = frames
            self.length = length
        }

        var next: Int { state.withLock { $0.next } }
        var refusals: Int { state.withLock { $0.refusals } }

        func text(_ number: Int) -> String {
            let head = "\(number) "
            return head + String(repeating: "x", count: max(0, length - head.utf8.count))
        }

        func go(_ connection: WebSocketConnection) {
            state.withLock { state in
                while state.next < frames {
                    switch connection.offer(WebSocketFrame(text: text(state.next))) {
                    case .queued:
                        state.next += 1
                    case .full:
                        state.refusals += 1
                        return
                    case .closed:
                        Issue.record("closed at frame \(state.next)")
                        return
                    }
                }
            }
        }
    }

    @Test func slowReaderReceivesAllFrames() throws {
        let streamer = Streamer(frames: 1500, length: 16 * 1024)
        let fixture = try Fixture(
            handler: RecordingHandler(
                onMessage: { _, connection in streamer.go(connection) },
                onDrained: { streamer.go($0) }
            )
        )
        let client = try WebSocketClient(port: fixture.port, receiveBuffer: 4096)
        try #require(try client.shakeHands().status == 101)
        try client.sendText("go")
        // First the sockets fill up, then the queue.
        try #require(eventually { streamer.refusals > fixture.handler.current.drains })
        try #require(streamer.next < streamer.frames)
        let deadline = Date(timeIntervalSinceNow: 60)
        for number in 0..<streamer.frames {
            try #require(try client.receive(deadline: deadline) == .text(streamer.text(number)))
        }
        #expect(fixture.handler.waits { $0.drains == streamer.refusals })
        #expect(fixture.server.statistics.messagesSent == streamer.frames)
    }

    /// The limits are so small that nearly every offer on this thread competes with the service thread.
    @Test(arguments: [1, 2, 3]) func everyRefusalIsFollowedByOneCall(_ limit: Int) throws {
        let rounds = 5000
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = limit
        let drained = DispatchSemaphore(value: 0)
        let fixture = try Fixture(configuration, handler: RecordingHandler(onDrained: { _ in drained.signal() }))
        let client = try fixture.open()
        try #require(fixture.handler.waits { $0.open.count == 1 })
        let connection = fixture.handler.current.open[0]
        var refusals = 0
        for number in 0..<rounds {
            let frame = WebSocketFrame(text: "\(number)")
            var answer = connection.offer(frame)
            while answer == .full {
                refusals += 1
                try #require(drained.wait(timeout: .now() + 10) == .success, "no call after refusal \(refusals)")
                answer = connection.offer(frame)
            }
            try #require(answer == .queued)
        }
        for number in 0..<rounds {
            try #require(try client.receive() == .text("\(number)"))
        }
        #expect(refusals > 0)
        #expect(fixture.handler.current.drains == refusals)
    }

    @Test func framesThatAreOfferedTogetherAreBounded() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = 3
        configuration.offerQueueBytes = 100
        let queued = Mutex<[Int]>([])
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(
                onMessage: { message, connection in
                    // On the service thread, nothing leaves the queue during the offer.
                    guard case .text(let lengths) = message else { return }
                    let frames = lengths.split(separator: " ").compactMap { Int($0) }.map {
                        WebSocketFrame(binary: [UInt8](repeating: 0, count: $0))
                    }
                    let (number, answer) = connection.offer(frames)
                    queued.withLock { $0.append(number) }
                    #expect(answer == (number == frames.count ? .queued : .full))
                }
            )
        )
        let client = try fixture.open()
        let offers = [("1 2 3", 3), ("1 2 3 4 5", 3), ("60 40 1", 2), ("1000 0 1", 1), ("60 41 40", 1)]
        for (lengths, number) in offers {
            try client.sendText(lengths)
            for length in lengths.split(separator: " ").prefix(number) {
                #expect(try client.receive() == .binary([UInt8](repeating: 0, count: Int(length) ?? -1)))
            }
        }
        #expect(queued.withLock { $0 } == offers.map(\.1))
        #expect(fixture.handler.waits { $0.drains == 4 })
    }

    @Test func offersAreBounded() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = 3
        configuration.offerQueueBytes = 100
        let answers = Mutex<[WebSocketConnection.Offer]>([])
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(
                onMessage: { message, connection in
                    // On the service thread, nothing leaves the queue during the offers.
                    guard case .text(let lengths) = message else { return }
                    let answered = lengths.split(separator: " ").compactMap { Int($0) }.map {
                        connection.offer(WebSocketFrame(binary: [UInt8](repeating: 0, count: $0)))
                    }
                    answers.withLock { $0 += answered }
                }
            )
        )
        let client = try fixture.open()
        for (lengths, expected) in [
            ("1 1 1 1 1", [.queued, .queued, .queued, .full, .full]), ("60 40 1", [.queued, .queued, .full]),
            ("1000 0 1", [.queued, .full, .full]), ("60 41 40", [.queued, .full, .queued]),
        ] as [(String, [WebSocketConnection.Offer])] {
            answers.withLock { $0 = [] }
            let drains = fixture.handler.current.drains
            try client.sendText(lengths)
            for (length, answer) in zip(lengths.split(separator: " "), expected) where answer == .queued {
                #expect(try client.receive() == .binary([UInt8](repeating: 0, count: Int(length) ?? -1)))
            }
            #expect(answers.withLock { $0 } == expected)
            #expect(fixture.handler.waits { $0.drains == drains + 1 })
        }
    }

    @Test func closedConnectionRefusesOffersAndDrainsNothing() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = 1
        let answers = Mutex<[WebSocketConnection.Offer]>([])
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(onMessage: { _, connection in
                let frame = WebSocketFrame(text: "x")
                answers.withLock { $0 = [connection.offer(frame), connection.offer(frame)] }
                connection.close(code: 1000)
                answers.withLock { $0.append(connection.offer(frame)) }
            })
        )
        let client = try fixture.open()
        try client.sendText("go")
        #expect(try client.receive() == .text("x"))
        #expect(try client.receive() == .close(code: 1000, reason: ""))
        try client.sendClose(code: 1000)
        #expect(fixture.handler.waits { $0.closes.values.first == 1000 })
        #expect(answers.withLock { $0 } == [.queued, .full, .closed])
        #expect(fixture.handler.current.drains == 0)
    }
}

extension OfferTests {
    private final class Holder: Sendable {}

    @Test func partsAreSentAsOneMessage() throws {
        let shared = [UInt8](repeating: 0x62, count: 200_000)
        let fixture = try Fixture(
            handler: RecordingHandler(onMessage: { _, connection in
                for prefix in ["a", ""] {
                    let frame = WebSocketFrame(utf8Parts: [Array(prefix.utf8), shared, [0x63]])
                    #expect(frame.count == prefix.utf8.count + shared.count + 1)
                    // A frame larger than half of the queue leaves no room for a second one.
                    #expect(connection.offer(frame) == (prefix == "a" ? .queued : .full))
                }
            })
        )
        let client = try fixture.open()
        try client.sendText("go")
        #expect(try client.receive() == .text("a" + String(decoding: shared, as: UTF8.self) + "c"))
    }

    @Test func holderIsReleasedWhenTheFrameIsSent() throws {
        let fixture = try Fixture()
        let client = try WebSocketClient(port: fixture.port, receiveBuffer: 4096)
        try #require(try client.shakeHands().status == 101)
        try #require(fixture.handler.waits { $0.open.count == 1 })
        let connection = fixture.handler.current.open[0]
        let length = 16 * 1024 * 1024
        weak var held: Holder?
        do {
            let holder = Holder()
            held = holder
            let frame = WebSocketFrame(binary: [UInt8](repeating: 1, count: length))
            #expect(connection.offer(frame, holding: holder) == .queued)
        }
        // The frame is larger than the queue, and is being sent. It uses the whole queue until it is sent.
        #expect(!eventually(within: 0.2) { connection.offer(WebSocketFrame(binary: [0])) != .full })
        #expect(held != nil)
        #expect(try client.receive() == .binary([UInt8](repeating: 1, count: length)))
        #expect(eventually { held == nil })
        #expect(fixture.handler.waits { $0.drains == 1 })
        weak var refused: Holder?
        do {
            let (first, second) = (Holder(), Holder())
            (held, refused) = (first, second)
            let frame = WebSocketFrame(binary: [UInt8](repeating: 1, count: length))
            #expect(connection.offer(frame, holding: first) == .queued)
            #expect(connection.offer(frame, holding: second) == .full)
        }
        #expect(held != nil && refused == nil)
    }

    @Test func holdersAreReleasedWithTheConnection() throws {
        let fixture = try Fixture()
        weak var sent: Holder?
        weak var queued: Holder?
        do {
            let client = try WebSocketClient(port: fixture.port, receiveBuffer: 4096)
            try #require(try client.shakeHands().status == 101)
            try #require(fixture.handler.waits { $0.open.count == 1 })
            let connection = fixture.handler.current.open[0]
            let (first, second) = (Holder(), Holder())
            (sent, queued) = (first, second)
            let large = WebSocketFrame(binary: [UInt8](repeating: 1, count: 100 * 1024))
            #expect(eventually { connection.offer(large, holding: first) == .full })
            #expect(connection.offer(WebSocketFrame(binary: [1]), holding: second) == .queued)
        }
        #expect(eventually { sent == nil && queued == nil })
    }
}
