import Coaty
import Synchronization
import TestSupport
import Testing

@testable import CoatyGateway

/// What one client is told, and when, by how much it reads.
@Suite(.closesOutlets) struct OutletTests {
    let transport = SteeredTransport()

    func outlet(hasOneLane: Bool = false, onEnd: @escaping @Sendable (Lane) -> Void = { _ in }) -> Outlet {
        Outlet(transport, hasOneLane: hasOneLane, onEnd: onEnd)
    }

    func read(_ outlet: Outlet, _ room: Int = .max) {
        transport.setRoom(room)
        outlet.pump()
    }

    func told() throws -> [String] { try transport.told.map(\.description) }

    @Test func answersComeFirstAndLanesTakeTurns() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lanes = ["a", "b", "c"].map { outlet.begun(id: $0) }
        for number in 1...3 { lanes[0].take(try Made.event(1, number)) }
        lanes[1].take(try Made.event(1, 4))
        lanes[1].end(.withdrawn)
        lanes[2].take(try Made.event(1, 5))
        outlet.begin(lanes[2])
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
        let lane = outlet.begun(id: "a")
        outlet.begin(lane)
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
        let lane = outlet.begun(id: nil)
        outlet.begin(lane)
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
        let lane = outlet.begun(id: nil)
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
        let lane = outlet.begun(id: nil, options: Made.options { ($0.buffer, $0.overflow) = (2, .close) })
        for number in 1...9 { lane.take(try Made.event(1, number)) }
        read(outlet)
        // What was turned down first is in the buffer, too.
        #expect(try told() == [#"- done("overflow")"#])
        #expect(transport.finished == [.overflow])
    }

    @Test func aClosedLaneIsTakenOut() throws {
        transport.setRoom(0)
        let outlet = outlet()
        let lanes = ["a", "b"].map { outlet.begun(id: $0) }
        for lane in lanes { lane.take(try Made.event(1, 1)) }
        outlet.close(lanes[0])
        lanes[0].take(try Made.event(1, 2))
        lanes[0].takeGap()
        lanes[0].end(.withdrawn)
        read(outlet)
        #expect(try told() == ["b event(1)"])
    }

    @Test func nothingIsToldBehindTheEndOfAConnection() throws {
        for room in [0, 1, Int.max] {
            let transport = SteeredTransport(room: room)
            let outlet = Outlet(transport)
            let lane = outlet.begun(id: "a")
            for number in 1...3 { lane.take(try Made.event(1, number)) }
            let before = transport.frames
            outlet.close()
            transport.setRoom(.max)
            outlet.pump()
            outlet.close()
            outlet.begin(lane)
            lane.take(try Made.event(1, 4))
            lane.takeGap()
            lane.end(.withdrawn)
            lane.refuse(Problems.subscriptionRefused)
            outlet.begun(id: "b").take(try Made.event(1, 5))
            #expect(!outlet.append(response: .pong, to: lane))
            #expect(transport.frames == before)
        }
    }

    @Test func aConnectionThatIsGoneIsNotWrittenToAgain() throws {
        let outlet = outlet()
        let lane = outlet.begun(id: "a")
        transport.setRoom(0)
        for number in 1...3 { lane.take(try Made.event(1, number)) }
        transport.go()
        outlet.pump()
        #expect(!outlet.append(response: .pong, to: lane))
        #expect(transport.frames.isEmpty)
    }

    @Test func whatIsHeldBackComesBeforeTheEnd() throws {
        let outlet = outlet()
        let lane = outlet.begun(id: "a", options: Made.options { $0.throttle = .seconds(3600) })
        for number in 1...3 { lane.take(try Made.event(1, number)) }
        lane.end(.withdrawn)
        #expect(try told() == ["a event(1)", "a event(3)", #"a done("withdrawn")"#])
    }

    @Test func whatIsHeldBackComesByItself() async throws {
        let outlet = outlet()
        let lane = outlet.begun(id: "a", options: Made.options { $0.throttle = .milliseconds(1) })
        lane.take(try Made.event(1, 1))
        lane.take(try Made.event(1, 2))
        try await untilTrue("the last comes") { try transport.told.last?.event == 2 }
        // And again, when the first timer has ended.
        for number in 3...9 { lane.take(try Made.event(1, number)) }
        try await untilTrue("the last comes again") { try transport.told.last?.event == 9 }
    }

    /// Who resumes behind the gap gets what was held back.
    @Test func aGapPassesWhatIsHeldBack() throws {
        let outlet = outlet()
        let lane = outlet.begun(id: "a", options: Made.options { $0.throttle = .seconds(3600) })
        for number in 1...4 { lane.take(try Made.event(number % 2, number)) }
        lane.take(EventRecord(.gap, cursor: StreamCursor(epoch: 1, position: 9)), SharedFrame())
        #expect(try told() == ["a event(1)", "a event(2)", "a gap(nil)"])
        #expect(try transport.told.last?.cursor?.position == 1)
    }

    // MARK: - Held lanes

    @Test func aHeldLaneTellsNothingBeforeItsOk() throws {
        let outlet = outlet()
        let lane = outlet.open(id: "a")
        let response = StreamFrame(.response, members: Array(#""n":1"#.utf8))
        for _ in 0..<3 { #expect(outlet.append(response: response, to: lane)) }
        outlet.end(lane, .limit)
        outlet.answer(.pong, id: "p")
        #expect(try told() == ["p pong"])
        transport.setRoom(0)
        outlet.begin(lane)
        read(outlet)
        #expect(
            try told() == ["p pong", "a ok", "a response", "a response", "a response", #"a done("limit")"#]
        )
    }

    @Test func aLaneSaysWhetherItHadBegun() async throws {
        let ended = Mutex<[String]>([])
        let outlet = outlet { lane in ended.withLock { $0.append(lane.id ?? "") } }
        func closing(_ lane: Lane) -> String { "\(outlet.close(lane))" }
        let lanes = ["a", "b", "c", "d"].map { outlet.open(id: $0) }
        #expect(closing(lanes[0]) == "held")
        #expect(closing(lanes[0]) == "over")
        outlet.begin(lanes[0])
        outlet.begin(lanes[1])
        #expect(closing(lanes[1]) == "begun")
        outlet.begin(lanes[2])
        outlet.end(lanes[2], .withdrawn)
        #expect(closing(lanes[2]) == "over", "its end is written")
        outlet.refuse(lanes[3], Problems.subscriptionRefused)
        #expect(closing(lanes[3]) == "over")
        #expect(try told() == ["b ok", "c ok", #"c done("withdrawn")"#, "d error"])
        try await untilTrue("the ends are told") { Set(ended.withLock(\.self)) == ["c", "d"] }
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
            outlet.begun(id: String(index), options: Made.options { $0.buffer = limit })
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
        let lanes = (0..<4).map { outlet.begun(id: String($0), options: Made.options { $0.buffer = 4096 }) }
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
