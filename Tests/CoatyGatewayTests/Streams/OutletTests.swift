import Coaty
import Synchronization
import Testing

@testable import CoatyGateway

/// What one client is told, and when, by how much it reads.
@Suite struct OutletTests {
    private let transport = SteeredTransport()

    private func outlet(hasOneLane: Bool = false, onEnd: @escaping @Sendable (Lane) -> Void = { _ in }) -> Outlet {
        Outlet(transport, hasOneLane: hasOneLane, onEnd: onEnd)
    }

    private func read(_ outlet: Outlet, _ room: Int = .max) {
        transport.setRoom(room)
        outlet.pump()
    }

    private func told() throws -> [String] { try transport.told.map(\.description) }

    @Test func answersComeFirstAndLanesTakeTurns() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lanes = ["a", "b", "c"].map { outlet.open(id: $0) }
        for number in 1...3 { lanes[0].take(try Made.event(1, number)) }
        lanes[1].take(try Made.event(1, 4))
        lanes[1].end(.withdrawn)
        lanes[2].take(try Made.event(1, 5))
        lanes[2].begin(nil)
        outlet.answer(.pong, id: "p")
        read(outlet, 5)
        #expect(try told() == ["c ok", "p pong", "a event(1)", "b event(4)", "c event(5)"])
        outlet.answer(.pong, id: "q")
        read(outlet)
        let rest = ["q pong", "a event(2)", #"b done("withdrawn")"#, "a event(3)"]
        #expect(try told().dropFirst(5) == rest[...])
    }

    @Test func anEndWaitsForWhatWaitsBeforeIt() async throws {
        let ended = Mutex<[String]>([])
        transport.setRoom(0)
        let outlet = outlet { lane in ended.withLock { $0.append(lane.id ?? "") } }
        let lane = outlet.open(id: "a")
        lane.begin(nil)
        for number in 1...3 { lane.take(try Made.event(1, number)) }
        lane.end(.withdrawn)
        lane.end(.limit)
        lane.take(try Made.event(1, 4))
        read(outlet, 3)
        #expect(ended.withLock(\.self).isEmpty)
        read(outlet)
        lane.take(try Made.event(1, 5))
        #expect(try told() == ["a ok", "a event(1)", "a event(2)", "a event(3)", #"a done("withdrawn")"#])
        try await untilTrue("the end is told") { ended.withLock(\.self) == ["a"] }
        #expect(transport.finished.isEmpty)
    }

    @Test func aSingleStreamIsFinishedWhenItsEndIsWritten() throws {
        let outlet = outlet(hasOneLane: true)
        let lane = outlet.open(id: nil)
        lane.begin(nil)
        transport.setRoom(1)
        for number in 1...2 { lane.take(try Made.event(1, number)) }
        lane.end(.withdrawn)
        read(outlet, 1)
        #expect(transport.finished.isEmpty)
        read(outlet, 1)
        #expect(transport.finished == [.withdrawn])
        read(outlet)
        lane.end(.limit)
        outlet.pump()
        #expect(transport.finished == [.withdrawn])
        #expect(try told() == ["- ok", "- event(1)", "- event(2)", #"- done("withdrawn")"#])
    }

    @Test func aSingleStreamIsFinishedBehindItsRefusal() throws {
        transport.setRoom(0)
        let outlet = outlet(hasOneLane: true)
        let lane = outlet.open(id: nil)
        lane.refuse(Problems.subscriptionRefused)
        #expect(transport.finished.isEmpty)
        read(outlet)
        lane.take(try Made.event(1, 1))
        lane.end(.withdrawn)
        #expect(try told() == ["- error"])
        #expect(transport.finished == [.withdrawn])
    }

    @Test func overflowEndsASingleStream() throws {
        transport.setRoom(0)
        let outlet = outlet(hasOneLane: true)
        let lane = outlet.open(id: nil, options: Made.options { ($0.buffer, $0.overflow) = (2, .close) })
        for number in 1...9 { lane.take(try Made.event(1, number)) }
        read(outlet)
        // What was turned down first is in the buffer, too.
        #expect(try told() == [#"- done("overflow")"#])
        #expect(transport.finished == [.overflow])
    }

    @Test func aClientThatDoesNotReadAnswersIsCutOff() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lane = outlet.open(id: "a")
        for _ in 0..<Outlet.maximumAnswers { outlet.answer(.pong, id: "p") }
        #expect(transport.aborts == 0)
        outlet.answer(.pong, id: "p")
        outlet.answer(.pong, id: "p")
        #expect(transport.aborts == 1)
        read(outlet)
        lane.take(try Made.event(1, 1))
        #expect(transport.frames.isEmpty)
    }

    @Test func aClosedLaneIsTakenOut() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lanes = ["a", "b"].map { outlet.open(id: $0) }
        for lane in lanes { lane.take(try Made.event(1, 1)) }
        outlet.close(lanes[0])
        lanes[0].take(try Made.event(1, 2))
        lanes[0].lose(nil)
        lanes[0].end(.withdrawn)
        read(outlet)
        #expect(try told() == ["b event(1)"])
    }

    @Test func nothingIsToldBehindTheEndOfAConnection() throws {
        for room in [0, 1, Int.max] {
            let transport = SteeredTransport(room: room)
            let outlet = Outlet(transport)
            let lane = outlet.open(id: "a")
            for number in 1...3 { lane.take(try Made.event(1, number)) }
            let before = transport.frames
            outlet.close()
            transport.setRoom(.max)
            outlet.pump()
            outlet.close()
            lane.begin(nil)
            lane.take(try Made.event(1, 4))
            lane.lose(3)
            lane.end(.withdrawn)
            lane.refuse(Problems.subscriptionRefused)
            outlet.open(id: "b").take(try Made.event(1, 5))
            #expect(!outlet.append(response: .pong, to: lane))
            #expect(transport.frames == before)
        }
    }

    @Test func aConnectionThatIsGoneIsNotWrittenToAgain() throws {
        let outlet = outlet()
        let lane = outlet.open(id: "a")
        transport.setRoom(0)
        for number in 1...3 { lane.take(try Made.event(1, number)) }
        transport.go()
        outlet.pump()
        #expect(!outlet.append(response: .pong, to: lane))
        #expect(transport.frames.isEmpty)
    }

    @Test func responsesEndAtTheirBytes() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lane = outlet.open(id: "a")
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
        let lanes = ["a", "b"].map { outlet.open(id: $0) }
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

    @Test func whatIsHeldBackComesBeforeTheEnd() throws {
        let outlet = outlet()
        let lane = outlet.open(id: "a", options: Made.options { $0.throttle = .seconds(3600) })
        for number in 1...3 { lane.take(try Made.event(1, number)) }
        lane.end(.withdrawn)
        #expect(try told() == ["a event(1)", "a event(3)", #"a done("withdrawn")"#])
    }

    @Test func whatIsHeldBackComesByItself() async throws {
        let outlet = outlet()
        let lane = outlet.open(id: "a", options: Made.options { $0.throttle = .milliseconds(1) })
        lane.take(try Made.event(1, 1))
        lane.take(try Made.event(1, 2))
        try await untilTrue("the last comes") { try transport.told.last?.event == 2 }
        // And again, when the first timer has ended.
        for number in 3...9 { lane.take(try Made.event(1, number)) }
        try await untilTrue("the last comes again") { try transport.told.last?.event == 9 }
    }

    /// Nothing holds a client that has gone: neither what waited, nor the source, nor a timer.
    @Test(arguments: [nil, Duration.seconds(3600)])
    func aClientThatHasGoneIsReleased(_ throttle: Duration?) async throws {
        let source = StreamSource(isResumable: true, memory: ResumeMemory(limit: 1 << 20))
        source.update(.standing)
        func use() throws -> (Weak<Outlet>, Weak<Lane>, Weak<SteeredTransport>) {
            let transport = SteeredTransport(room: 2)
            let outlet = Outlet(transport)
            let lane = outlet.open(id: "a", options: Made.options { $0.throttle = throttle })
            source.add(lane)
            for number in 1...5 { source.say(try Made.event(number % 2, number)) }
            source.remove(lane)
            outlet.close()
            return (Weak(outlet), Weak(lane), Weak(transport))
        }
        let (outlet, lane, transport) = try use()
        try await untilTrue("all is released") {
            outlet.object == nil && lane.object == nil && transport.object == nil
        }
    }

    private struct Weak<Object: AnyObject> {
        weak var object: Object?

        init(_ object: Object) { self.object = object }
    }

    /// Lanes of one client, whose room comes and goes.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func whatIsToldAndWhatIsLostAddUp(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let outlet = outlet()
        let limits = (0..<3).map { _ in Int.random(in: 1...6, using: &random) }
        let lanes = limits.enumerated().map { index, limit in
            outlet.open(id: String(index), options: Made.options { $0.buffer = limit })
        }
        var sent = [0, 0, 0]
        for _ in 0..<500 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: read(outlet, Int.random(in: 0...5, using: &random))
            case 1: outlet.answer(.pong, id: "p")
            default:
                let lane = Int.random(in: 0..<3, using: &random)
                sent[lane] += 1
                lanes[lane].take(try Made.event(1, sent[lane]))
            }
        }
        read(outlet)
        let told = try transport.told
        for lane in 0..<3 {
            var position = 0
            for frame in told where frame.id == String(lane) {
                switch frame.content {
                case .event(let number):
                    #expect(number == position + 1)
                    position = number
                case .gap(let count): position += try #require(count)
                default: Issue.record("\(frame)")
                }
            }
            #expect(position == sent[lane])
        }
    }

    /// Nobody is left waiting where room comes while others write.
    @Test func noWakeUpIsLost() async throws {
        let outlet = outlet()
        let lanes = (0..<4).map { outlet.open(id: String($0), options: Made.options { $0.buffer = 4096 }) }
        let events = try (1...1000).map { try Made.event(1, $0) }
        transport.setRoom(0)
        await withTaskGroup(of: Void.self) { group in
            for lane in lanes { group.addTask { for event in events { lane.take(event) } } }
            group.addTask { [transport] in
                for _ in 0..<2000 {
                    transport.setRoom(2)
                    outlet.pump()
                }
            }
        }
        read(outlet)
        let told = try transport.told
        for lane in 0..<4 {
            #expect(told.filter { $0.id == String(lane) }.compactMap(\.event) == Array(1...1000))
        }
    }
}
