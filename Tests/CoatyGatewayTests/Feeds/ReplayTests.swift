import Coaty
import TestSupport
import Testing

@testable import Base
@testable import Feeds

/// Replay for a slow client, while events keep arriving and the replay buffer evicts records.
@Suite(.exclusive, .closesOutboundQueues) struct ReplayTests {
    private struct Published {
        /// The number of the last event, which is also its position.
        var last = 0
        var gaps: [Int] = []
    }

    /// Returns whether the filter of the test accepts an event.
    private static func isWanted(_ number: Int, _ isFiltered: Bool) -> Bool { !isFiltered || number % 3 == 0 }

    /// Checks the delivered frames and returns the last position.
    private static func check(
        _ delivered: [DeliveredFrame],
        _ published: Published,
        from begin: Int,
        _ isFiltered: Bool
    ) throws -> Int {
        var position = begin
        for frame in delivered {
            switch frame.content {
            case .event(let number):
                let missed = (position + 1..<max(number, position + 1)).filter {
                    isWanted($0, isFiltered) || published.gaps.contains($0)
                }
                #expect(number > position, "\(number) was delivered after \(position)")
                #expect(missed == [], "before \(number)")
                #expect(frame.cursor?.position == UInt64(number))
                position = number
            case .gap(let dropped):
                let end = Int(try #require(frame.cursor?.position))
                let passed = position + 1..<end + 1
                #expect(!passed.isEmpty)
                let hasGap = published.gaps.contains { passed.contains($0) }
                if isFiltered || hasGap {
                    #expect(dropped == nil)
                } else {
                    #expect(dropped == passed.count)
                }
                position = end
            default: Issue.record("\(frame)")
            }
        }
        return position
    }

    @Test(arguments: [false, true], 0..<25 as Range<UInt64>)
    func eachEventIsDeliveredOnceOrCountedInGap(_ isFiltered: Bool, seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let buffer = ReplayBuffer(limit: try Made.recordSize() * Int.random(in: 10...60, using: &random))
        let feed = Feed(isResumable: true, memory: buffer)
        let other = Feed(isResumable: true, memory: buffer)
        for feed in [feed, other] { feed.update(.standing) }
        var published = Published()
        func deliver() throws {
            published.last += 1
            let isWanted = Self.isWanted(published.last, isFiltered)
            let members = #""objectType":"t","objectId":"o","name":"o","n":\#(published.last),"w":\#(isWanted)"#
            feed.deliver(try Made.channel(#"{"object":{"coreType":"CoatyObject",\#(members)}}"#))
        }
        func disconnect() {
            published.last += 1
            published.gaps.append(published.last)
            feed.update(.offline)
            feed.update(.standing)
        }
        let probe = SteeredTransport()
        feed.add(OutboundQueue(probe).open(id: nil))
        try await settled()
        let since = try #require(try probe.delivered.first?.cursor)
        for _ in 0..<Int.random(in: 1...80, using: &random) { try deliver() }

        let transport = SteeredTransport(room: 0)
        let outbound = OutboundQueue(transport)
        let filter = isFiltered ? try Made.condition(#"["w",["Equals",true]]"#) : nil
        let options = Made.options { ($0.since, $0.filter, $0.buffer) = (.plain(since), filter, 4096) }
        feed.add(outbound.open(id: "a", options: options))
        for _ in 0..<400 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8: try deliver()
            case 8: disconnect()
            case 9..<13: other.deliver(try Made.event(1, 10))
            case 13..<17:
                transport.setRoom(Int.random(in: 0..<8, using: &random))
                outbound.pump()
            default: await Task.yield()
            }
        }
        try deliver()
        while !Self.isWanted(published.last, isFiltered) { try deliver() }
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("the last event is delivered") {
            try transport.delivered.last.map { Int($0.cursor?.position ?? 0) >= published.last } ?? false
        }
        let delivered = try transport.delivered
        #expect(delivered.first?.content == .ok)
        let end = try Self.check(Array(delivered.dropFirst()), published, from: 0, isFiltered)
        #expect(end == published.last)
        // Later events are delivered immediately.
        try deliver()
        while !Self.isWanted(published.last, isFiltered) { try deliver() }
        try await settled()
        #expect(try transport.delivered.last?.event == published.last)
    }

    /// Events that are published during a replay are still delivered in order.
    @Test func clientThatIsBehindGetsEventsInOrder() async throws {
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 64 << 20))
        feed.update(.standing)
        let transport = SteeredTransport(room: 1)
        let outbound = OutboundQueue(transport)
        var options = SubscriptionOptions()
        // A client that has caught up may fall behind again.
        options.buffer = Limits().buffer
        feed.add(outbound.open(id: "a", options: options)) {
            ObjectSnapshot((0..<500).map { Made.alive($0, 0) }, cursor: $0())
        }
        try await settled()
        let events = try (1...1000).map { try Made.event(1, $0) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for event in events { feed.deliver(event) } }
            group.addTask {
                for _ in 0..<500 {
                    transport.setRoom(2)
                    outbound.pump()
                }
            }
        }
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("all came") { transport.frames.count >= 1501 }
        let delivered = try transport.delivered
        #expect(delivered.dropFirst().prefix(500).allSatisfy { $0.content == .change("added") })
        #expect(delivered.compactMap(\.event) == Array(1...1000))
        #expect(delivered.count == 1501)
    }

    /// The replay buffer evicts the unread records of a closed feed in their order; the size of the gap is then
    /// unknown.
    @Test func unreadEventsOfClosedFeedAreReportedAsGap() async throws {
        let buffer = try Made.replayBuffer(of: 100)
        let feed = Feed(isResumable: true, memory: buffer)
        let other = Feed(isResumable: true, memory: buffer)
        let transport = SteeredTransport(room: 0)
        let outbound = OutboundQueue(transport)
        feed.add(outbound.open(id: "a"))
        let last = 11 + 2 * SubscriptionQueue.maximumFetched
        for number in 11...last { feed.deliver(try Made.event(1, number)) }
        feed.update(.standing)
        transport.setRoom(2)
        outbound.pump()
        try await untilTrue("the first came") { transport.frames.count == 2 }
        feed.end()
        for _ in 0..<200 { other.deliver(try Made.event(1, 10)) }
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("the end came") { try transport.delivered.last?.content == .done("withdrawn") }
        // Some events were already read from the replay buffer.
        let delivered = try transport.delivered.map(\.content)
        let events = try transport.delivered.compactMap(\.event)
        #expect(events == Array(11..<11 + events.count))
        #expect((1...SubscriptionQueue.maximumFetched + 1).contains(events.count))
        #expect(delivered == [.ok] + events.map { .event($0) } + [.gap(nil), .done("withdrawn")])
    }

    @Test func replayDoesNotDelayLiveEvents() async throws {
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 64 << 20))
        feed.update(.standing)
        let transport = SteeredTransport()
        let outbound = OutboundQueue(transport)
        let probe = SteeredTransport()
        feed.add(OutboundQueue(probe).open(id: nil))
        try await settled()
        let since = try #require(try probe.delivered.first?.cursor)
        for number in 1...2000 { feed.deliver(try Made.event(1, number)) }
        feed.add(outbound.open(id: "live"))
        try await settled()
        let options = Made.options { $0.since = .plain(since) }
        transport.setRoom(0)
        feed.add(outbound.open(id: "behind", options: options))
        for number in 2001...2100 { feed.deliver(try Made.event(1, number)) }
        try await settled()
        transport.setRoom(101)
        outbound.pump()
        try await untilTrue("there is no more room") { transport.frames.count >= 102 }
        #expect(try transport.delivered.filter { $0.id == "live" }.compactMap(\.event) == Array(2001...2100))
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("all came") { transport.frames.count >= 2 + 100 + 2100 }
        #expect(try transport.delivered.filter { $0.id == "behind" }.compactMap(\.event) == Array(1...2100))
    }
}
