import Coaty
import TestSupport
import Testing

@testable import CoatyGateway

/// What those are told first who ask for what is there.
extension StreamSourceTests {
    /// Until the broker has acknowledged, nothing happens that the beginning would not know.
    @Test func aBeginningIsNotForgottenWhileItWaits() async throws {
        let source = source(nil, nil)
        source.add(try lane("a")) { ObjectSnapshot([Made.alive(1, 0)], cursor: $0) }
        source.say(try Made.change(.changed, 1, 1, from: 0))
        #expect(transport.frames.isEmpty)
        source.update(.standing)
        source.say(try Made.change(.removed, 1, 1))
        try await expect("a", [.ok, .change("added"), .change("changed"), .change("removed")])
    }

    /// Behind a cursor before the snapshot its client would miss it.
    @Test func whatStandsBeforeASnapshotHasNoCursor() async throws {
        let source = source()
        try say(1...1, on: source)
        source.update(.offline)
        let unknown = StreamCursor(epoch: 1, position: 1)
        for (id, since) in [("a", nil), ("b", unknown)] {
            source.add(try lane(id, since: since)) { ObjectSnapshot([Made.alive(1, 0), Made.alive(2, 0)], cursor: $0) }
            try await expect(id, [.ok, .gap(nil), .change("added"), .change("added")])
            let cursors = try transport.told.filter { $0.id == id }.map(\.cursor?.position)
            #expect(cursors == [nil, nil, nil, 2])
        }
        let last = try #require(try transport.told.last?.cursor)
        source.add(try lane("c", since: last)) { ObjectSnapshot([Made.alive(1, 0)], cursor: $0) }
        try await expect("c", [.ok])
    }

    /// Objects come and change while a client reads, now and then, which there were when it began: what it knows in the end
    /// is what there is.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func aSnapshotAndItsChangesAreWhatThereIs(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let source = source()
        var there: [Int: Int] = [:]
        for key in 0..<(Outlet.turn * 3) { there[key] = 0 }
        transport.setRoom(1)
        source.add(try lane("a")) { cursor in
            ObjectSnapshot(there.map { Made.alive($0.key, $0.value * 1000 + $0.key) }, cursor: cursor)
        }
        func number(_ key: Int, _ value: Int) -> Int { value * 1000 + key }
        for value in 1...300 {
            let key = Int.random(in: 0..<300, using: &random)
            if let earlier = there[key] {
                if Bool.random(using: &random) {
                    source.say(try Made.change(.removed, key, number(key, earlier)))
                    there[key] = nil
                } else {
                    source.say(try Made.change(.changed, key, number(key, value), from: number(key, earlier)))
                    there[key] = value
                }
            } else {
                source.say(try Made.change(.added, key, number(key, value)))
                there[key] = value
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                transport.setRoom(Int.random(in: 0..<5, using: &random))
                outlet.pump()
                await Task.yield()
            }
        }
        transport.setRoom(.max)
        outlet.pump()
        let count = 1 + Outlet.turn * 3 + 300
        try await untilTrue("all came") { transport.frames.count >= count }
        var known: [Int: Int] = [:]
        for frame in try transport.told.dropFirst() {
            let number = try #require(frame.number)
            let (value, key) = number.quotientAndRemainder(dividingBy: 1000)
            switch frame.content {
            case .change("added"): #expect(known.updateValue(value, forKey: key) == nil)
            case .change("changed"): #expect(known.updateValue(value, forKey: key).map { $0 < value } == true)
            case .change("removed"): #expect(known.removeValue(forKey: key) == value)
            default: Issue.record("\(frame)")
            }
        }
        #expect(known == there)
        #expect(transport.frames.count == count)
    }

    /// What is looked at in vain holds nobody up: each has its turn.
    @Test func aSnapshotOfNothingLetsOthersTakeTheirTurns() async throws {
        let source = source()
        transport.setRoom(0)
        let objects = (0..<Outlet.turn * 5).map { Made.alive($0, 0) }
        source.add(try lane("a", filter: #"["n",["GreaterThan",0]]"#)) { ObjectSnapshot(objects, cursor: $0) }
        source.say(try Made.change(.added, 1, 1))
        let other = outlet.begun(id: "b")
        for number in 1...3 { other.take(try Made.event(1, number)) }
        transport.setRoom(.max)
        outlet.pump()
        try await expect("a", [.ok, .change("added")])
        #expect(
            try transport.told.map(\.description)
                == ["a ok", "b event(1)", "b event(2)", "b event(3)", #"a change("added")"#]
        )
    }

    @Test func aBacklogOfNothingLetsOthersTakeTheirTurns() async throws {
        let source = source()
        let count = Outlet.turn * 5
        try say(0...count, on: source)
        transport.setRoom(0)
        let begin = try cursorOfOk(of: source)
        source.add(try lane("a", since: begin, filter: #"["n",["GreaterThan",\#(count - 1)]]"#))
        let other = outlet.begun(id: "b")
        for number in 1...3 { other.take(try Made.event(1, number)) }
        transport.setRoom(.max)
        outlet.pump()
        try await expect("a", [.ok, .event(count)])
        #expect(
            try transport.told.map(\.description)
                == ["a ok", "b event(1)", "b event(2)", "b event(3)", "a event(\(count))"]
        )
    }

    /// A cursor before all that a source has said, as its first subscriber would have got it.
    private func cursorOfOk(of source: StreamSource) throws -> StreamCursor {
        let transport = SteeredTransport()
        source.add(Outlet(transport).open(id: nil))
        let last = try #require(try transport.told.first?.cursor)
        return StreamCursor(epoch: last.epoch, position: 0)
    }
}
