import Coaty
import Synchronization
import Testing

@testable import CoatyGateway

/// One thing that is observed: who is told what of it, from when on, and what those get who come back.
@Suite(.closesOutlets) struct StreamSourceTests {
    let transport = SteeredTransport()
    let outlet: Outlet
    let memory = ResumeMemory(limit: 1 << 20)

    init() {
        outlet = Outlet(transport)
    }

    func source(_ memory: ResumeMemory? = nil, _ status: SubscriptionStatus? = .standing) -> StreamSource {
        let source = StreamSource(isResumable: true, memory: memory ?? self.memory)
        if let status { source.update(status) }
        return source
    }

    func lane(_ id: String, since: StreamCursor? = nil, filter: String? = nil) throws -> Lane {
        var options = StreamOptions()
        options.since = since
        options.filter = try filter.map(Made.condition)
        return outlet.open(id: id, options: options)
    }

    func say(_ numbers: ClosedRange<Int>, on source: StreamSource) throws {
        for number in numbers { source.say(try Made.event(number, number)) }
    }

    func told(_ id: String) throws -> [Told.Content] {
        try transport.told.filter { $0.id == id }.map(\.content)
    }

    func cursor(_ number: Int) throws -> StreamCursor {
        try #require(try transport.told.last { $0.event == number }?.cursor)
    }

    /// Waits until a subscription was told so much, and no more.
    func expect(
        _ id: String,
        _ expected: [Told.Content],
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        try await untilTrue("\(id) is told all") { try told(id).count >= expected.count }
        #expect(try told(id) == expected, sourceLocation: location)
    }

    // MARK: - Beginning

    /// What comes before the broker's word is told behind it, and the cursor of the ok is before that.
    @Test func aSubscriptionStandsWhenTheBrokerHasAcknowledged() async throws {
        let source = source(nil, nil)
        source.add(try lane("a"))
        try say(1...2, on: source)
        source.add(try lane("b"))
        try say(3...3, on: source)
        #expect(transport.frames.isEmpty)
        source.update(.standing)
        source.add(try lane("c"))
        try say(4...4, on: source)
        try await expect("a", [.ok, .event(1), .event(2), .event(3), .event(4)])
        try await expect("b", [.ok, .event(3), .event(4)])
        try await expect("c", [.ok, .event(4)])
        let begun = try transport.told.filter { $0.content == .ok }
        #expect(begun.map(\.id) == ["a", "b", "c"])
        #expect(begun.map(\.cursor?.position) == [0, 2, 3])
        source.add(try lane("d", since: begun[1].cursor))
        try await expect("d", [.ok, .event(3), .event(4)])
    }

    /// Who comes while offline gets a gap to resume behind, and no cursor before it.
    @Test func aLostLinkIsAGap() async throws {
        let source = source()
        source.add(try lane("a"))
        try say(1...1, on: source)
        source.update(.offline)
        source.add(try lane("b"))
        source.update(.standing)
        try say(2...2, on: source)
        source.add(try lane("c"))
        try await expect("a", [.ok, .event(1), .gap(nil), .event(2)])
        try await expect("b", [.ok, .gap(nil), .event(2)])
        try await expect("c", [.ok])
        let b = try transport.told.filter { $0.id == "b" }
        #expect(b.map(\.cursor?.position) == [nil, 2, 3])
        source.add(try lane("d", since: b[1].cursor))
        try await expect("d", [.ok, .event(2)])
    }

    @Test func whoWaitsWithoutALinkIsToldSo() async throws {
        let source = source(nil, nil)
        source.add(try lane("a"))
        source.update(.offline)
        try await expect("a", [.ok, .gap(nil)])
        #expect(try transport.told.map(\.cursor?.position) == [0, 1])
    }

    @Test func whatTheBrokerRefusesIsAnError() async throws {
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
        try await expect("a", [.error])
        try await expect("b", [.error])
        try await expect("c", [.ok, .event(1), .gap(nil), .error])
    }

    @Test func allEndsWithWhatIsObserved() async throws {
        let source = source(nil, nil)
        let closed = Mutex(0)
        source.hold { closed.withLock { $0 += 1 } }
        source.add(try lane("a"))
        source.end()
        source.end()
        source.close()
        source.add(try lane("b"))
        source.update(.standing)
        try say(1...1, on: source)
        try await expect("a", [.error])
        try await expect("b", [.error])
        source.hold { closed.withLock { $0 += 10 } }
        #expect(closed.withLock(\.self) == 11)
        let other = self.source()
        other.add(try lane("c"))
        other.end()
        try await expect("c", [.ok, .done("withdrawn")])
    }
}
