import Coaty
import Logging
import Synchronization
import Testing

@testable import Base
@testable import Feeds

/// Bounds of the data that is queued for one client, and for all clients together.
extension OutboundQueueTests {
    @Test func replyBytesAreBounded() throws {
        func answer(_ bytes: Int) -> ServerFrame {
            ServerFrame(.error, members: Array(#""p":"\#(String(repeating: "p", count: bytes - 6))""#.utf8))
        }
        let outbound = outbound()
        let maximum = Limits().queuedReplies * OutboundQueue.bytesPerReply
        // Written frames release their own bytes, and no more.
        for number in 0..<100 {
            let subscription = outbound.open(id: String(number))
            outbound.begin(subscription)
            outbound.end(subscription, .limit)
        }
        transport.setRoom(0)
        for _ in 0..<16 { outbound.reply(answer(maximum / 16), id: nil) }
        #expect(transport.aborts == 0)
        read(outbound)
        transport.setRoom(0)
        // A single reply may be larger.
        outbound.reply(answer(2 * maximum), id: nil)
        read(outbound)
        #expect(transport.aborts == 0 && transport.frames.count == 217)
        transport.setRoom(0)
        for _ in 0..<16 { outbound.reply(answer(maximum / 16), id: nil) }
        outbound.reply(answer(7), id: nil)
        #expect(transport.aborts == 1)
        read(outbound)
        #expect(transport.frames.count == 217)
    }

    /// Queued, held back by throttling, or taken by the connection: an event counts for its client until it is sent.
    @Test func eventsAreChargedUntilTheyAreSent() throws {
        let account = ClientAccount.single()
        let transport = SteeredTransport()
        let outbound = OutboundQueue(transport, of: account)
        let subscription = outbound.begun(id: "a")
        let throttled = outbound.begun(
            id: "t",
            options: Made.options { $0.throttle = Throttle(interval: .seconds(60)) }
        )
        transport.sendLater()
        subscription.take(try Made.event(1, 10, padding: 1000))
        let one = account.memory.used
        #expect(one > 1000 && outbound.statistics.queuedBytes == 0)
        transport.setRoom(0)
        for number in 11...12 { subscription.take(try Made.event(1, number, padding: 1000)) }
        #expect(account.memory.used == 3 * one && outbound.statistics.queuedBytes > 2000)
        for number in 13...14 { throttled.take(try Made.event(1, number, padding: 1000)) }
        #expect(account.memory.used >= 5 * one)
        outbound.close(throttled)
        #expect(account.memory.used == 3 * one)
        transport.setRoom(.max)
        outbound.pump()
        #expect(account.memory.used == 3 * one)
        transport.send()
        #expect(account.memory.used == 0)
        transport.setRoom(0)
        subscription.take(try Made.event(1, 15, padding: 1000))
        outbound.reply(.pong, id: "p")
        #expect(account.memory.used > one)
        outbound.close()
        #expect(account.memory.used == 0)
    }

    /// An event that many clients hold counts in full for each of them, and once in the total.
    @Test(arguments: [false, true]) func sharedEventsCountOnceInTheTotal(isTaken: Bool) async throws {
        let accounts = Accounts(Limits(), logger: Logger(label: "test"))
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 100 << 20))
        feed.update(.standing)
        let size = 1 << 20
        // Most of them read the feed's events as they come; the others resume.
        var clients: [(account: ClientAccount, transport: SteeredTransport)] = []
        func add(_ count: Int, since: FeedCursor? = nil) async throws {
            for _ in 0..<count {
                let account = accounts.account(ofAddress: "192.0.2.\(clients.count)")
                let transport = SteeredTransport()
                if isTaken { transport.sendLater() }
                let outbound = OutboundQueue(transport, of: account)
                feed.add(outbound.open(id: "a", options: Made.options { $0.since = since.map(ClientCursor.plain) }))
                try await untilTrue("it has begun") { try transport.delivered.contains { $0.content == .ok } }
                clients.append((account, transport))
                if !isTaken { transport.setRoom(0) }
            }
        }
        try await add(1)
        let cursor = try #require(try clients[0].transport.delivered.last?.cursor)
        try await add(7)
        feed.deliver(try Made.event(1, 10, padding: size))
        try await settled()
        try await add(8, since: cursor)
        try await settled()
        #expect(clients.allSatisfy { $0.account.memory.used > size })
        #expect((size..<2 * size).contains(accounts.memory.used))
        for client in clients {
            client.transport.setRoom(.max)
            client.transport.send()
        }
        ClosesOutboundQueues.made.close()
        #expect(accounts.memory.used == 0 && clients.allSatisfy { $0.account.memory.used == 0 })
    }

    /// Without memory, an event is dropped even if the connection would take it.
    @Test func eventsWithoutMemoryAreDroppedWithGap() throws {
        let account = ClientAccount.single()
        let outbound = OutboundQueue(transport, of: account)
        let subscription = outbound.begun(id: "a")
        let request = outbound.open(id: "r")
        let others = try account.charge(ClientAccount.memoryLimit - 1000)
        for number in 1...3 { subscription.take(try Made.event(1, number, padding: 1000)) }
        subscription.take(try Made.event(1, 4))
        #expect(try delivered() == ["a gap(Optional(1))", "a gap(Optional(1))", "a gap(Optional(1))", "a event(4)"])
        let response = ServerFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 1000))""#.utf8))
        #expect(!outbound.append(response: response, to: request))
        #expect(transport.frames.count == 4)
        withExtendedLifetime(others) {}
    }

    @Test func replayWithoutMemoryHasGap() async throws {
        let account = ClientAccount.single()
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 100 << 20))
        feed.update(.standing)
        let first = OutboundQueue(transport)
        feed.add(first.open(id: "a"))
        try await untilTrue("it has begun") { try !delivered().isEmpty }
        let cursor = try #require(try transport.delivered.last?.cursor)
        for number in 1...5 { feed.deliver(try Made.event(1, number, padding: number == 5 ? 0 : 1000)) }
        let others = try account.charge(ClientAccount.memoryLimit - 1000)
        let second = SteeredTransport()
        feed.add(OutboundQueue(second, of: account).open(id: "b", options: Made.options { $0.since = .plain(cursor) }))
        try await untilTrue("all is delivered") { try second.delivered.last?.content == .event(5) }
        let contents = try second.delivered.map(\.content)
        // The replay is read in turns of limited time: each turn may have a gap of its own.
        var dropped = 0
        for case .gap(let count?) in contents { dropped += count }
        #expect(dropped == 4)
        #expect(contents.filter { if case .gap = $0 { false } else { true } } == [.ok, .event(5)])
        withExtendedLifetime(others) {}
    }

    /// A client whose memory is full keeps as many events queued as before; new events replace the oldest.
    @Test func fullMemoryDoesNotShrinkExistingQueues() throws {
        let account = ClientAccount.single()
        let transport = SteeredTransport(room: 0)
        let outbound = OutboundQueue(transport, of: account)
        let subscription = outbound.begun(id: "a")
        for number in 10..<90 { subscription.take(try Made.event(1, number, padding: 2000)) }
        let others = try account.charge(ClientAccount.memoryLimit - account.memory.used)
        for number in 90..<99 { subscription.take(try Made.event(1, number, padding: 2000)) }
        transport.setRoom(.max)
        outbound.pump()
        #expect(try transport.delivered.map(\.content) == [.gap(9)] + (19..<99).map { .event($0) })
        withExtendedLifetime(others) {}
    }

    /// Replies are never refused. A client without memory that does not read them is disconnected early.
    @Test func repliesAreBoundedByMemory() throws {
        let account = ClientAccount.single()
        transport.setRoom(0)
        let outbound = OutboundQueue(transport, of: account)
        let others = try account.charge(ClientAccount.memoryLimit)
        let reply = ServerFrame(.error, members: Array(#""p":"\#(String(repeating: "p", count: 1000))""#.utf8))
        for _ in 0..<16 { outbound.reply(reply, id: nil) }
        #expect(transport.aborts == 0)
        outbound.reply(reply, id: nil)
        #expect(transport.aborts == 1)
        #expect(account.memory.used == ClientAccount.memoryLimit)
        withExtendedLifetime(others) {}
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
        for _ in 0..<Limits().queuedReplies { outbound.reply(.pong, id: "p") }
        #expect(transport.aborts == 0)
        outbound.reply(.pong, id: "p")
        outbound.reply(.pong, id: "p")
        #expect(transport.aborts == 1)
        read(outbound)
        subscription.take(try Made.event(1, 1))
        #expect(transport.frames.isEmpty)
    }

    @Test func queuedRepliesAreBoundedByTheSetting() throws {
        var limits = Limits()
        limits.queuedReplies = 16
        transport.setRoom(0)
        let outbound = OutboundQueue(transport, of: ClientAccount.single(limits))
        for _ in 0..<16 { outbound.reply(.pong, id: "p") }
        #expect(transport.aborts == 0)
        outbound.reply(.pong, id: "p")
        #expect(transport.aborts == 1)
    }

    /// When many throttled events are due at once, they are released in turns, and other deadlines run in between.
    @Test func throttledEventsDoNotDelayOtherDeadlines() async throws {
        let count = 10 * OutboundQueue.releaseBatch
        let transport = SteeredTransport(room: 0)
        let probe = Probe(transport, at: 1 + count + 1)
        let outbound = OutboundQueue(probe)
        // From here on, throttled events are not released until the client reads.
        outbound.reply(.pong, id: "p")
        let options = Made.options { ($0.buffer, $0.throttle) = (count, Throttle(interval: .milliseconds(1))) }
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

        func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) { transport.offer(batch) }

        private func look() { state.withLock { $0.seen = transport.frames.count } }

        func finish(_ end: ConnectionEnd) { transport.finish(end) }
        func abort() { transport.abort() }
    }

    /// A transport whose client answers a request at the moment when the connection has the frame.
    private final class FastAnswers: FrameTransport {
        let rights = AnswerRights(window: .seconds(60), limit: 10)
        private let transport: SteeredTransport
        private let answered = Mutex<[Bool]>([])

        init(_ transport: SteeredTransport) { self.transport = transport }

        var all: [Bool] { answered.withLock(\.self) }

        func offer(_ frame: OutboundFrame) -> FrameOffer {
            let offer = transport.offer(frame)
            if case .queued = offer, let id = transport.frames.last.flatMap({ try? DeliveredFrame($0).number }) {
                answered.withLock { $0.append(rights.take(CoatyUUID(wire: "\(id)"))) }
            }
            return offer
        }

        func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) { transport.offer(batch) }
        func finish(_ end: ConnectionEnd) { transport.finish(end) }
        func abort() { transport.abort() }
    }

    @Test func requestsCanBeAnsweredAtOnce() throws {
        let answers = FastAnswers(transport)
        let outbound = OutboundQueue(answers)
        outbound.note(deliveriesIn: answers.rights)
        let subscription = outbound.begun(id: "a")
        func take(_ number: Int) throws {
            var event = try Made.event(1, number)
            event.request = DeliveredRequest(correlationId: CoatyUUID(wire: "\(number)"), isDiscover: false)
            subscription.take(event)
        }
        try take(1)
        transport.setRoom(0)
        try take(2)
        read(outbound, from: transport)
        #expect(answers.all == [true, true])
    }

    @Test func responsesAreRefusedBeyondByteBound() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscription = outbound.begun(id: "a")
        outbound.reply(.pong, id: "p")
        let response = ServerFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 1 << 20))""#.utf8))
        var taken = 1
        while outbound.append(response: response, to: subscription), taken < 100 { taken += 1 }
        #expect(taken == Limits().responseBytes >> 20)
        read(outbound)
        #expect(transport.frames.count == taken + 1)
        #expect(outbound.append(response: response, to: subscription))
    }

    @Test func queuedBytesAreSettings() throws {
        transport.setRoom(0)
        var limits = Limits()
        (limits.queuedBytes, limits.responseBytes) = (3000, 3000)
        let outbound = OutboundQueue(transport, of: .single(limits))
        let subscriptions = ["a", "b"].map { outbound.begun(id: $0) }
        subscriptions[0].take(try Made.event(1, 1, padding: 2900))
        subscriptions[1].take(try Made.event(1, 2, padding: 2900))
        let response = ServerFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 2000))""#.utf8))
        #expect(outbound.append(response: response, to: subscriptions[0]))
        #expect(!outbound.append(response: response, to: subscriptions[0]))
        read(outbound)
        #expect(try delivered().filter { $0.hasPrefix("b") } == ["b gap(Optional(1))"])
    }

    @Test func queuedBytesAreBoundedAcrossSubscriptions() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscriptions = ["a", "b"].map { outbound.begun(id: $0) }
        subscriptions[0].take(try Made.event(1, 1, padding: Limits().queuedBytes))
        subscriptions[1].take(try Made.event(1, 2))
        read(outbound)
        #expect(try delivered() == ["a event(1)", "b gap(Optional(1))"])
        // All bytes are released.
        transport.setRoom(0)
        subscriptions[1].take(try Made.event(1, 3, padding: Limits().queuedBytes))
        read(outbound)
        #expect(try delivered().last == "b event(3)")
    }
}
