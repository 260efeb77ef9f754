import Coaty
import Synchronization
import Testing

@testable import CoatyGateway

/// What waits for one client, and for all together, is bounded.
extension OutletTests {
    @Test func theBytesOfAnswersAreBounded() throws {
        func answer(_ bytes: Int) -> StreamFrame {
            StreamFrame(.error, members: Array(#""p":"\#(String(repeating: "p", count: bytes - 6))""#.utf8))
        }
        let outlet = outlet()
        // What is written gives its room back, and no more than that.
        for number in 0..<100 {
            let lane = outlet.open(id: String(number))
            outlet.begin(lane)
            outlet.end(lane, .limit)
        }
        transport.setRoom(0)
        for _ in 0..<16 { outlet.answer(answer(Outlet.maximumAnswerBytes / 16), id: nil) }
        #expect(transport.aborts == 0)
        read(outlet)
        transport.setRoom(0)
        // One alone may be larger.
        outlet.answer(answer(2 * Outlet.maximumAnswerBytes), id: nil)
        read(outlet)
        #expect(transport.aborts == 0 && transport.frames.count == 217)
        transport.setRoom(0)
        for _ in 0..<16 { outlet.answer(answer(Outlet.maximumAnswerBytes / 16), id: nil) }
        outlet.answer(answer(7), id: nil)
        #expect(transport.aborts == 1)
        read(outlet)
        #expect(transport.frames.count == 217)
    }

    /// Where all clients together have no room left, each still has a little.
    @Test func someBytesAreGuaranteed() throws {
        let memory = WaitingMemory()
        let transport = SteeredTransport(room: 0)
        let outlet = Outlet(transport, sharing: memory)
        let lane = outlet.begun(id: "a", options: Made.options { $0.buffer = 4096 })
        let size = EventRecord(.event(try Made.event(1, 10, padding: 1000)), cursor: nil).size
        // The first is turned down by the transport.
        for number in 10...14 { lane.take(try Made.event(1, number, padding: 1000)) }
        memory.add(WaitingMemory.limit)
        let count = Outlet.guaranteedBytes / size
        for number in 15..<(10 + 2 * count) { lane.take(try Made.event(1, number % 90 + 10, padding: 1000)) }
        transport.setRoom(.max)
        outlet.pump()
        let told = try transport.told.map(\.content)
        #expect(told.count == count + 1)
        #expect(told.first == .gap(count))
        // The memory is full still, but not with what this client has got.
        #expect(memory.add(-WaitingMemory.limit))
        let request = outlet.open(id: "r")
        memory.add(WaitingMemory.limit)
        let response = StreamFrame(
            .response,
            members: Array(#""p":"\#(String(repeating: "p", count: 16 << 10))""#.utf8)
        )
        #expect((0..<4).map { _ in outlet.append(response: response, to: request) } == [true, true, true, false])
        outlet.close()
        #expect(memory.add(-WaitingMemory.limit))
        #expect(!memory.add(WaitingMemory.limit), "all was given back, and no more")
    }

    /// What waited before the memory was full stays.
    @Test func whoIsBehindWhenTheMemoryIsFullKeepsWhatWaits() throws {
        let memory = WaitingMemory()
        let transport = SteeredTransport(room: 0)
        let outlet = Outlet(transport, sharing: memory)
        let lane = outlet.begun(id: "a")
        for number in 10..<90 { lane.take(try Made.event(1, number, padding: 2000)) }
        memory.add(WaitingMemory.limit)
        for number in 90..<99 { lane.take(try Made.event(1, number, padding: 2000)) }
        transport.setRoom(.max)
        outlet.pump()
        #expect(try transport.told.map(\.content) == [.gap(9)] + (19..<99).map { .event($0) })
    }

    /// Responses take no room from events, nor events from responses.
    @Test func responsesAndEventsAreCountedApart() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let (lane, request) = (outlet.begun(id: "a"), outlet.begun(id: "r"))
        let response = StreamFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 5 << 20))""#.utf8))
        #expect(outlet.append(response: response, to: request))
        #expect(outlet.append(response: response, to: request))
        for number in 1...3 { lane.take(try Made.event(1, number, padding: 1 << 20)) }
        #expect(outlet.append(response: response, to: request))
        read(outlet)
        #expect(
            try told() == ["r response", "a event(1)", "r response", "a event(2)", "r response", "a event(3)"]
        )
    }

    @Test func aClientThatDoesNotReadAnswersIsCutOff() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lane = outlet.begun(id: "a")
        for _ in 0..<Outlet.maximumAnswers { outlet.answer(.pong, id: "p") }
        #expect(transport.aborts == 0)
        outlet.answer(.pong, id: "p")
        outlet.answer(.pong, id: "p")
        #expect(transport.aborts == 1)
        read(outlet)
        lane.take(try Made.event(1, 1))
        #expect(transport.frames.isEmpty)
    }

    /// Other deadlines come between the turns in which much passes that was held back at once.
    @Test func whatWasHeldBackTakesTurnsWithOtherDeadlines() async throws {
        let count = 10 * Outlet.turn
        let transport = SteeredTransport(room: 0)
        let probe = Probe(transport, at: 1 + count + 1)
        let outlet = Outlet(probe)
        // From here on, until it reads, nothing that is held back is looked at.
        outlet.answer(.pong, id: "p")
        let options = Made.options { ($0.buffer, $0.throttle) = (count, .milliseconds(1)) }
        let lane = outlet.begun(id: "a", options: options)
        for number in 1...2 * count { lane.take(try Made.event(number % count, number)) }
        read(outlet, from: transport)
        try await untilTrue("all is told") { transport.frames.count == 1 + 2 * count }
        #expect(try transport.told.compactMap(\.event) == Array(1...2 * count))
        try await untilTrue("the other deadline is over") { probe.seen != nil }
        #expect(try #require(probe.seen) < 1 + 2 * count)
    }

    private func read(_ outlet: Outlet, from transport: SteeredTransport) {
        transport.setRoom(.max)
        outlet.pump()
    }

    /// Sees how much has been told when a deadline is over that begins with a frame of a number.
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

        func finish(_ reason: StreamFrame.EndReason) { transport.finish(reason) }
        func abort() { transport.abort() }
    }

    @Test func responsesEndAtTheirBytes() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lane = outlet.begun(id: "a")
        outlet.answer(.pong, id: "p")
        let response = StreamFrame(.response, members: Array(#""p":"\#(String(repeating: "p", count: 1 << 20))""#.utf8))
        var taken = 1
        while outlet.append(response: response, to: lane), taken < 100 { taken += 1 }
        #expect(taken == Outlet.maximumResponseBytes >> 20)
        read(outlet)
        #expect(transport.frames.count == taken + 1)
        #expect(outlet.append(response: response, to: lane))
    }

    @Test func bytesAreBoundedAcrossLanes() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lanes = ["a", "b"].map { outlet.begun(id: $0) }
        lanes[0].take(try Made.event(1, 1, padding: Outlet.maximumWaitingBytes))
        lanes[1].take(try Made.event(1, 2))
        read(outlet)
        #expect(try told() == ["a event(1)", "b gap(Optional(1))"])
        // All was given back.
        transport.setRoom(0)
        lanes[1].take(try Made.event(1, 3, padding: Outlet.maximumWaitingBytes))
        read(outlet)
        #expect(try told().last == "b event(3)")
    }
}
