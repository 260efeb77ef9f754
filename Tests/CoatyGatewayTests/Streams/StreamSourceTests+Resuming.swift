import Coaty
import Testing

@testable import CoatyGateway

/// What those get who come back.
extension StreamSourceTests {
    @Test func whoComesBackGetsWhatCameMeanwhile() async throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...5, on: source)
        let second = try cursor(2)
        let last = try cursor(5)
        source.add(try lane("b", since: second))
        source.add(try lane("c", since: last))
        source.add(try lane("d", since: second, filter: #"["n",["GreaterThan",4]]"#))
        try say(6...6, on: source)
        try await expect("b", [.ok, .event(3), .event(4), .event(5), .event(6)])
        try await expect("c", [.ok, .event(6)])
        try await expect("d", [.ok, .event(5), .event(6)])
        #expect(try transport.told.filter { $0.content == .ok }.map { $0.cursor == nil } == [false, true, true, true])
    }

    @Test func aGapIsReplayedInItsPlace() async throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...1, on: source)
        source.update(.offline)
        source.update(.standing)
        try say(2...2, on: source)
        source.add(try lane("b", since: try cursor(1)))
        try await expect("b", [.ok, .gap(nil), .event(2)])
    }

    @Test func anotherLifeCannotBeResumed() async throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...2, on: source)
        let last = try cursor(2)
        for (id, cursor) in [
            ("b", StreamCursor(epoch: last.epoch &+ 1, position: 1)),
            ("c", StreamCursor(epoch: last.epoch, position: 3)),
            ("d", StreamCursor(epoch: last.epoch, position: .max)),
        ] {
            source.add(try lane(id, since: cursor))
            try await expect(id, [.ok, .gap(nil), .event(1), .event(2)])
        }
        // A beginning tells more than the rest of the past.
        source.add(try lane("e", since: StreamCursor(epoch: last.epoch &+ 1, position: 1))) { cursor in
            ObjectSnapshot([Made.alive(1, 0)], cursor: cursor)
        }
        try await expect("e", [.ok, .gap(nil), .change("added")])
        #expect(try transport.told.last?.cursor == last)
    }

    /// A memory that holds about so many events; each must be an eighth of it at most.
    private func memory(of events: Int) throws -> ResumeMemory {
        ResumeMemory(limit: try Made.recordSize() * events)
    }

    @Test func whatWasForgottenIsCounted() async throws {
        let source = source(try memory(of: 10))
        source.add(try lane("a"))
        try say(11...40, on: source)
        source.add(try lane("b", since: try cursor(15)))
        source.add(try lane("c", since: try cursor(15), filter: #"["n",["GreaterThan",38]]"#))
        source.add(try lane("d", since: try cursor(30)))
        source.add(
            outlet.open(id: "e", options: Made.options { $0.since = try? cursor(15) }, wanted: .objects(.core(.Task)))
        )
        let kept = (31...40).map { Told.Content.event($0) }
        try await expect("b", [.ok, .gap(15)] + kept)
        try await expect("c", [.ok, .gap(nil), .event(39), .event(40)])
        try await expect("d", [.ok] + kept)
        try await untilTrue("e is told of the gap") { try told("e").prefix(2) == [.ok, .gap(nil)] }
        // The gap's cursor is behind what is missing.
        let gap = try #require(try transport.told.first { $0.id == "b" && $0.content == .gap(15) }?.cursor)
        #expect(gap == (try cursor(30)))
    }

    @Test func aGapAmongWhatWasForgottenHasNoNumber() async throws {
        let source = source(try memory(of: 10))
        source.add(try lane("a"))
        try say(11...12, on: source)
        source.update(.offline)
        source.update(.standing)
        try say(13...40, on: source)
        source.update(.offline)
        source.update(.standing)
        try say(41...41, on: source)
        source.add(try lane("b", since: try cursor(11)))
        source.add(try lane("c", since: try cursor(13)))
        try await untilTrue("all came") { try told("b").last == .event(41) && told("c").last == .event(41) }
        let (b, c) = (try told("b"), try told("c"))
        #expect(b.prefix(2) == [.ok, .gap(nil)])
        #expect(b.suffix(2) == [.gap(nil), .event(41)])
        let events = c.filter { if case .event = $0 { true } else { false } }.count
        #expect(c.count == events + 3)
        #expect(c[1] == .gap(28 - events))
    }

    @Test func theMemoryIsThatOfAll() async throws {
        let memory = try memory(of: 10)
        let (source, other) = (source(memory), source(memory))
        source.add(try lane("a"))
        try say(11...12, on: source)
        try say(13...40, on: other)
        source.add(try lane("b", since: StreamCursor(epoch: try cursor(11).epoch, position: 0)))
        try await expect("b", [.ok, .gap(2)])
        try say(41...41, on: source)
        try await expect("b", [.ok, .gap(2), .event(41)])
    }

    @Test func withoutMemoryNothingIsResumed() async throws {
        let source = source(ResumeMemory(limit: 0))
        source.add(try lane("a"))
        try say(1...3, on: source)
        source.add(try lane("b", since: try cursor(1)))
        source.add(try lane("c", since: try cursor(3)))
        try await expect("b", [.ok, .gap(2)])
        try say(4...4, on: source)
        try await expect("b", [.ok, .gap(2), .event(4)])
        try await expect("c", [.ok, .event(4)])
        // What comes while a snapshot is told waits for its client all the same.
        transport.setRoom(1)
        source.add(try lane("d")) { ObjectSnapshot([Made.alive(1, 0), Made.alive(2, 0)], cursor: $0) }
        try say(5...7, on: source)
        transport.setRoom(.max)
        outlet.pump()
        let told: [Told.Content] = [.ok, .change("added"), .change("added"), .event(5), .event(6), .event(7)]
        try await expect("d", told)
        try say(8...8, on: source)
        try await expect("d", told + [.event(8)])
    }
}
