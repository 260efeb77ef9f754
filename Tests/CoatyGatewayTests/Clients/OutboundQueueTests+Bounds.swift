import Coaty
import Synchronization
import Testing

@testable import CoatyGateway

/// Bounds of the data that is queued for one client, and for all clients together.
extension OutboundQueueTests {
    @Test func replyBytesAreBounded() throws {
        func answer(_ bytes: Int) -> ServerFrame {
            ServerFrame(.error, members: Array(#""p":"\#(String(repeating: "p", count: bytes - 6))""#.utf8))
        }
        let outbound = outbound()
        // Written frames release their own bytes, and no more.
        for number in 0..<100 {
            let subscription = outbound.open(id: String(number))
            outbound.begin(subscription)
            outbound.end(subscription, .limit)
        }
        transport.setRoom(0)
        for _ in 0..<16 { outbound.reply(answer(OutboundQueue.maximumReplyBytes / 16), id: nil) }
        #expect(transport.aborts == 0)
        read(outbound)
        transport.setRoom(0)
        // A single reply may be larger.
        outbound.reply(answer(2 * OutboundQueue.maximumReplyBytes), id: nil)
        read(outbound)
        #expect(transport.aborts == 0 && transport.frames.count == 217)
        transport.setRoom(0)
        for _ in 0..<16 { outbound.reply(answer(OutboundQueue.maximumReplyBytes / 16), id: nil) }
        outbound.reply(answer(7), id: nil)
        #expect(transport.aborts == 1)
        read(outbound)
        #expect(transport.frames.count == 217)
    }

    /// When the memory of all clients is full, each client can still queue a few bytes.
    @Test func someBytesAreGuaranteedWhenMemoryIsFull() throws {
        let memory = QueueMemory()
        let transport = SteeredTransport(room: 0)
        let outbound = OutboundQueue(transport, sharing: memory)
        let subscription = outbound.begun(id: "a", options: Made.options { $0.buffer = 4096 })
        let size = Made.item(try Made.event(1, 10, padding: 1000)).size
        // The transport refuses the first event.
        for number in 10...14 { subscription.take(try Made.event(1, number, padding: 1000)) }
        memory.add(QueueMemory.limit)
        let count = OutboundQueue.guaranteedBytes / size
        for number in 15..<(10 + 2 * count) { subscription.take(try Made.event(1, number % 90 + 10, padding: 1000)) }
        transport.setRoom(.max)
        outbound.pump()
        let delivered = try transport.delivered.map(\.content)
        #expect(delivered.count == count + 1)
        #expect(delivered.first == .gap(count))
        // The memory is still full, but the bytes delivered to this client are released.
        #expect(memory.add(-QueueMemory.limit))
        let request = outbound.open(id: "r")
        memory.add(QueueMemory.limit)
        let response = ServerFrame(
            .response,
            members: Array(#""p":"\#(String(repeating: "p", count: 16 << 10))""#.utf8)
        )
        #expect((0..<4).map { _ in outbound.append(response: response, to: request) } == [true, true, true, false])
        outbound.close()
        #expect(memory.add(-QueueMemory.limit))
        #expect(!memory.add(QueueMemory.limit), "all was given back, and no more")
    }

    /// A client keeps as many bytes queued as before the memory was full; new events replace the oldest.
    @Test func fullMemoryDoesNotShrinkExistingQueues() throws {
        let memory = QueueMemory()
        let transport = SteeredTransport(room: 0)
        let outbound = OutboundQueue(transport, sharing: memory)
        let subscription = outbound.begun(id: "a")
        for number in 10..<90 { subscription.take(try Made.event(1, number, padding: 2000)) }
        memory.add(QueueMemory.limit)
        for number in 90..<99 { subscription.take(try Made.event(1, number, padding: 2000)) }
        transport.setRoom(.max)
        outbound.pump()
        #expect(try transport.delivered.map(\.content) == [.gap(9)] + (19..<99).map { .event($0) })
    }

    /// Queued responses leave the bytes for events unchanged, and the reverse.
    @Test func responsesAndEventsHaveSeparateBounds() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let (subscription, request) = (outbound.begun(id: "a"), outbound.begun(id: "r"))
        let response = ServerFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 5 << 20))""#.utf8))
        #expect(outbound.append(response: response, to: request))
        #expect(outbound.append(response: response, to: request))
        for number in 1...3 { subscription.take(try Made.event(1, number, padding: 1 << 20)) }
        #expect(outbound.append(response: response, to: request))
        read(outbound)
        #expect(
            try delivered() == ["r response", "a event(1)", "r response", "a event(2)", "r response", "a event(3)"]
        )
    }

    @Test func connectionIsAbortedWhenTooManyRepliesAreQueued() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscription = outbound.begun(id: "a")
        for _ in 0..<OutboundQueue.maximumReplies { outbound.reply(.pong, id: "p") }
        #expect(transport.aborts == 0)
        outbound.reply(.pong, id: "p")
        outbound.reply(.pong, id: "p")
        #expect(transport.aborts == 1)
        read(outbound)
        subscription.take(try Made.event(1, 1))
        #expect(transport.frames.isEmpty)
    }

    /// When many throttled events are due at once, they are released in turns, and other deadlines run in between.
    @Test func throttledEventsDoNotDelayOtherDeadlines() async throws {
        let count = 10 * OutboundQueue.releaseBatch
        let transport = SteeredTransport(room: 0)
        let probe = Probe(transport, at: 1 + count + 1)
        let outbound = OutboundQueue(probe)
        // From here on, throttled events are not released until the client reads.
        outbound.reply(.pong, id: "p")
        let options = Made.options { ($0.buffer, $0.throttle) = (count, .milliseconds(1)) }
        let subscription = outbound.begun(id: "a", options: options)
        for number in 1...2 * count { subscription.take(try Made.event(number % count, number)) }
        read(outbound, from: transport)
        try await untilTrue("everything is delivered") { transport.frames.count == 1 + 2 * count }
        #expect(try transport.delivered.compactMap(\.event) == Array(1...2 * count))
        try await untilTrue("the other deadline is over") { probe.seen != nil }
        #expect(try #require(probe.seen) < 1 + 2 * count)
    }

    private func read(_ outbound: OutboundQueue, from transport: SteeredTransport) {
        transport.setRoom(.max)
        outbound.pump()
    }

    /// Records how many frames are delivered when a deadline expires that starts with the frame `number`.
    private final class Probe: FrameTransport {
        private let transport: SteeredTransport
        private let number: Int
        private let state = Mutex<(deadline: Deadline?, seen: Int?)>((nil, nil))

        init(_ transport: SteeredTransport, at number: Int) {
            self.transport = transport
            self.number = number
        }

        var seen: Int? { state.withLock(\.seen) }

        func offer(_ frame: OutboundFrame) -> FrameOffer {
            let offer = transport.offer(frame)
            state.withLock { state in
                guard state.deadline == nil, transport.frames.count == number else { return }
                state.deadline = Deadline(after: .zero) { [weak self] in self?.look() }
            }
            return offer
        }

        private func look() { state.withLock { $0.seen = transport.frames.count } }

        func finish(_ end: ConnectionEnd) { transport.finish(end) }
        func abort() { transport.abort() }
    }

    @Test func responsesAreRefusedBeyondByteBound() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscription = outbound.begun(id: "a")
        outbound.reply(.pong, id: "p")
        let response = ServerFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 1 << 20))""#.utf8))
        var taken = 1
        while outbound.append(response: response, to: subscription), taken < 100 { taken += 1 }
        #expect(taken == OutboundQueue.maximumResponseBytes >> 20)
        read(outbound)
        #expect(transport.frames.count == taken + 1)
        #expect(outbound.append(response: response, to: subscription))
    }

    @Test func queuedBytesAreBoundedAcrossSubscriptions() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscriptions = ["a", "b"].map { outbound.begun(id: $0) }
        subscriptions[0].take(try Made.event(1, 1, padding: OutboundQueue.maximumQueuedBytes))
        subscriptions[1].take(try Made.event(1, 2))
        read(outbound)
        #expect(try delivered() == ["a event(1)", "b gap(Optional(1))"])
        // All bytes are released.
        transport.setRoom(0)
        subscriptions[1].take(try Made.event(1, 3, padding: OutboundQueue.maximumQueuedBytes))
        read(outbound)
        #expect(try delivered().last == "b event(3)")
    }
}
