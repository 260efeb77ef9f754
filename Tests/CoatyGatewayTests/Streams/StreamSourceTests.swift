import Coaty
import Synchronization
import Testing

@testable import CoatyGateway

/// One thing that is observed: who is told what of it, from when on, and what those get who come back.
@Suite struct StreamSourceTests {
    private let transport = SteeredTransport()
    private let outlet: Outlet
    private let memory = ResumeMemory(limit: 1 << 20)

    init() {
        outlet = Outlet(transport)
    }

    private func source(_ memory: ResumeMemory? = nil, _ status: SubscriptionStatus? = .standing) -> StreamSource {
        let source = StreamSource(isResumable: true, memory: memory ?? self.memory)
        if let status { source.update(status) }
        return source
    }

    private func lane(_ id: String, since: StreamCursor? = nil, filter: String? = nil) throws -> Lane {
        var options = StreamOptions()
        options.since = since
        options.filter = try filter.map { try ObjectFilterCondition(Payload(Array($0.utf8)).json) }
        return outlet.open(id: id, options: options)
    }

    private func say(_ numbers: ClosedRange<Int>, on source: StreamSource) throws {
        for number in numbers { source.say(try Made.event(number, number)) }
    }

    private func told(_ id: String) throws -> [Told.Content] {
        try transport.told.filter { $0.id == id }.map(\.content)
    }

    private func cursor(_ number: Int) throws -> StreamCursor {
        try #require(try transport.told.last { $0.event == number }?.cursor)
    }

    // MARK: - Beginning

    @Test func aSubscriptionStandsWhenTheBrokerHasAcknowledged() throws {
        let source = source(nil, nil)
        source.add(try lane("a"))
        #expect(transport.frames.isEmpty)
        source.update(.standing)
        try say(1...1, on: source)
        source.add(try lane("b"))
        try say(2...2, on: source)
        #expect(try told("a") == [.ok, .event(1), .event(2)])
        #expect(try told("b") == [.ok, .event(2)])
    }

    @Test func anEventIsAsGoodAsAnAcknowledgement() throws {
        let source = source(nil, nil)
        source.add(try lane("a"))
        try say(1...1, on: source)
        source.update(.standing)
        #expect(try told("a") == [.ok, .event(1)])
    }

    @Test func aLostLinkIsAGap() throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...1, on: source)
        source.update(.offline)
        source.add(try lane("b"))
        source.update(.standing)
        try say(2...2, on: source)
        source.add(try lane("c"))
        #expect(try told("a") == [.ok, .event(1), .gap(nil), .event(2)])
        #expect(try told("b") == [.ok, .gap(nil), .event(2)])
        #expect(try told("c") == [.ok])
    }

    @Test func whoWaitsWithoutALinkIsToldSo() throws {
        let source = source(nil, nil)
        source.add(try lane("a"))
        source.update(.offline)
        #expect(try told("a") == [.ok, .gap(nil)])
    }

    @Test func whatTheBrokerRefusesIsAnError() throws {
        let source = source(nil, nil)
        source.add(try lane("a"))
        source.update(.refused)
        source.add(try lane("b"))
        source.update(.standing)
        source.add(try lane("c"))
        try say(1...1, on: source)
        // A reconnect may bring a refusal to those who had been granted it.
        source.update(.offline)
        source.update(.refused)
        try say(2...2, on: source)
        #expect(try told("a") == [.error])
        #expect(try told("b") == [.error])
        #expect(try told("c") == [.ok, .event(1), .gap(nil), .error])
    }

    @Test func allEndsWithWhatIsObserved() throws {
        let source = source(nil, nil)
        let closed = Mutex(0)
        source.hold { closed.withLock { $0 += 1 } }
        source.add(try lane("a"))
        source.end(.withdrawn)
        source.end(.withdrawn)
        source.close()
        source.add(try lane("b"))
        source.update(.standing)
        try say(1...1, on: source)
        #expect(try told("a") == [.done("withdrawn")])
        #expect(try told("b") == [.done("withdrawn")])
        source.hold { closed.withLock { $0 += 10 } }
        #expect(closed.withLock(\.self) == 11)
    }

    /// Until the broker has acknowledged, nothing happens that the beginning would not know.
    @Test func aBeginningIsNotForgottenWhileItWaits() throws {
        let source = source(nil, nil)
        source.add(try lane("a")) { ObjectSnapshot([Made.alive(1, 0)], cursor: $0) }
        #expect(transport.frames.isEmpty)
        source.update(.standing)
        source.say(try Made.change(.removed, 1))
        #expect(try told("a") == [.ok, .change("added"), .change("removed")])
    }

    // MARK: - Resuming

    @Test func whoComesBackGetsWhatCameMeanwhile() throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...5, on: source)
        let second = try cursor(2)
        let last = try cursor(5)
        source.add(try lane("b", since: second))
        source.add(try lane("c", since: last))
        source.add(try lane("d", since: second, filter: #"["n",["GreaterThan",4]]"#))
        try say(6...6, on: source)
        #expect(try told("b") == [.ok, .event(3), .event(4), .event(5), .event(6)])
        #expect(try told("c") == [.ok, .event(6)])
        #expect(try told("d") == [.ok, .event(5), .event(6)])
    }

    @Test func aGapIsReplayedInItsPlace() throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...1, on: source)
        source.update(.offline)
        source.update(.standing)
        try say(2...2, on: source)
        source.add(try lane("b", since: try cursor(1)))
        #expect(try told("b") == [.ok, .gap(nil), .event(2)])
    }

    @Test func anotherLifeCannotBeResumed() throws {
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
            #expect(try told(id) == [.ok, .gap(nil), .event(1), .event(2)])
        }
        // A beginning tells more than the rest of the past.
        source.add(try lane("e", since: StreamCursor(epoch: last.epoch &+ 1, position: 1))) { cursor in
            ObjectSnapshot([Made.alive(1, 0)], cursor: cursor)
        }
        #expect(try told("e") == [.ok, .gap(nil), .change("added")])
        #expect(try transport.told.last?.cursor == last)
    }

    /// A memory that holds about so many events.
    private func memory(of events: Int) throws -> ResumeMemory {
        let record = EventRecord(.event(try Made.event(1, 1)), cursor: nil)
        return ResumeMemory(limit: record.size * events)
    }

    @Test func whatWasForgottenIsCounted() throws {
        let source = source(try memory(of: 3))
        source.add(try lane("a"))
        try say(1...8, on: source)
        source.add(try lane("b", since: try cursor(2)))
        source.add(try lane("c", since: try cursor(2), filter: #"["n",["GreaterThan",6]]"#))
        source.add(try lane("d", since: try cursor(5)))
        source.add(outlet.open(id: "e", options: Made.options { $0.since = try? cursor(2) }, kind: .core(.Task)))
        #expect(try told("b") == [.ok, .gap(3), .event(6), .event(7), .event(8)])
        #expect(try told("c") == [.ok, .gap(nil), .event(7), .event(8)])
        #expect(try told("d") == [.ok, .event(6), .event(7), .event(8)])
        #expect(try told("e").prefix(2) == [.ok, .gap(nil)])
    }

    @Test func aGapAmongWhatWasForgottenHasNoNumber() throws {
        let source = source(try memory(of: 4))
        source.add(try lane("a"))
        try say(1...2, on: source)
        source.update(.offline)
        source.update(.standing)
        try say(3...8, on: source)
        source.update(.offline)
        source.update(.standing)
        try say(9...9, on: source)
        source.add(try lane("b", since: try cursor(1)))
        source.add(try lane("c", since: try cursor(3)))
        let b = try told("b")
        #expect(b.prefix(2) == [.ok, .gap(nil)])
        #expect(b.suffix(2) == [.gap(nil), .event(9)])
        guard case .gap(.some)? = try told("c").dropFirst().first else {
            Issue.record("no gap was before the events that are missing")
            return
        }
    }

    @Test func theMemoryIsThatOfAll() throws {
        let memory = try memory(of: 3)
        let (source, other) = (source(memory), source(memory))
        source.add(try lane("a"))
        try say(1...2, on: source)
        try say(3...20, on: other)
        source.add(try lane("b", since: StreamCursor(epoch: try cursor(1).epoch, position: 0)))
        #expect(try told("b") == [.ok, .gap(2)])
        try say(21...21, on: source)
        #expect(try told("b") == [.ok, .gap(2), .event(21)])
    }

    @Test func withoutMemoryNothingIsResumed() throws {
        let source = source(ResumeMemory(limit: 0))
        source.add(try lane("a"))
        try say(1...3, on: source)
        source.add(try lane("b", since: try cursor(1)))
        #expect(try told("b") == [.ok, .gap(2)])
    }

    @Test func theMemoryKeepsItsBound() throws {
        let memory = try memory(of: 3)
        let records = try (0..<100).map { EventRecord(.event(try Made.event(1, $0)), cursor: nil) }
        var numbers: [UInt64] = []
        for record in records {
            let (number, first) = memory.insert(record)
            numbers.append(number)
            #expect(number - first < 3)
        }
        #expect(numbers == Array(0..<100))
        let kept = memory.records(numbers)
        #expect(kept.map(ObjectIdentifier.init) == records.suffix(kept.count).map(ObjectIdentifier.init))
        #expect((2...3).contains(kept.count))
    }

    // MARK: - Races

    private final class Count: Sendable {
        let value = Atomic(0)
    }

    /// However subscriptions come and go while events are said: each is told without a hole from where it began, in order and
    /// once, and nothing that is said after its removal has returned.
    @Test func subscriptionsMayComeAndGoAtAnyTime() async throws {
        let source = source(nil, nil)
        let events = try (1...400).map { try Made.event(1, $0) }
        let said = Count()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for event in events {
                    said.value.add(1, ordering: .sequentiallyConsistent)
                    source.say(event)
                    await Task.yield()
                }
            }
            group.addTask { source.update(.standing) }
            for task in 0..<4 {
                group.addTask {
                    for turn in 0..<50 {
                        let transport = SteeredTransport()
                        let outlet = Outlet(transport)
                        let lane = outlet.open(id: "l", options: Made.options { $0.buffer = 4096 })
                        source.add(lane)
                        for _ in 0...(task + turn % 3) { await Task.yield() }
                        source.remove(lane)
                        let last = said.value.load(ordering: .sequentiallyConsistent)
                        let before = transport.frames
                        await Task.yield()
                        #expect(transport.frames == before)
                        let told = (try? transport.told) ?? []
                        let numbers = told.compactMap(\.event)
                        if let first = numbers.first {
                            #expect(told.first?.content == .ok)
                            #expect(numbers == Array(first..<first + numbers.count))
                            #expect(first + numbers.count - 1 <= last)
                        }
                    }
                }
            }
        }
    }

    /// Who resumes while events are said gets each of them once.
    @Test func resumingLeavesNothingOut() async throws {
        let source = source()
        let events = try (1...300).map { try Made.event(1, $0) }
        source.add(try lane("a"))
        source.say(events[0])
        let first = try cursor(1)
        let transports = (0..<8).map { _ in SteeredTransport() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for event in events.dropFirst() { source.say(event) } }
            for transport in transports {
                group.addTask {
                    let outlet = Outlet(transport)
                    source.add(outlet.open(id: "l", options: Made.options { $0.since = first }))
                }
            }
        }
        for transport in transports {
            #expect(try transport.told.compactMap(\.event) == Array(2...300))
            #expect(try transport.told.count == 300)
        }
    }

    /// The end comes once, and last.
    @Test func theEndIsTheLastThatIsTold() async throws {
        for _ in 0..<50 {
            let source = source()
            let events = try (1...20).map { try Made.event(1, $0) }
            let transports = (0..<3).map { _ in SteeredTransport() }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for event in events { source.say(event) } }
                group.addTask { source.end(.withdrawn) }
                group.addTask { source.end(.withdrawn) }
                for transport in transports {
                    group.addTask {
                        source.add(Outlet(transport, hasOneLane: true).open(id: nil))
                    }
                }
            }
            for transport in transports {
                let told = try transport.told.map(\.content)
                #expect(told.last == .done("withdrawn"))
                #expect(told.filter { $0 == .done("withdrawn") }.count == 1)
                #expect(transport.finished == [.withdrawn])
            }
        }
    }
}
