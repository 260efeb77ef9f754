import Coaty
import Testing

@testable import Feeds

/// Replay for clients that resume.
extension FeedTests {
    @Test func resumingClientGetsMissedEvents() async throws {
        let feed = feed()
        feed.add(try subscription("a"))
        try await deliver(1...5, on: feed)
        let second = try cursor(2)
        let last = try cursor(5)
        feed.add(try subscription("b", since: second))
        feed.add(try subscription("c", since: last))
        feed.add(try subscription("d", since: second, filter: #"["n",["GreaterThan",4]]"#))
        try await deliver(6...6, on: feed)
        try await expect("b", [.ok, .event(3), .event(4), .event(5), .event(6)])
        try await expect("c", [.ok, .event(6)])
        try await expect("d", [.ok, .event(5), .event(6)])
        #expect(
            try transport.delivered.filter { $0.content == .ok }.map { $0.cursor == nil } == [false, true, true, true]
        )
    }

    @Test func gapIsReplayedInPlace() async throws {
        let feed = feed()
        feed.add(try subscription("a"))
        try await deliver(1...1, on: feed)
        feed.update(.offline)
        feed.update(.standing)
        try await deliver(2...2, on: feed)
        feed.add(try subscription("b", since: try cursor(1)))
        try await expect("b", [.ok, .gap(nil), .event(2)])
    }

    @Test func unknownCursorIsReportedAsGap() async throws {
        let feed = feed()
        feed.add(try subscription("a"))
        try await deliver(1...2, on: feed)
        let last = try cursor(2)
        for (id, cursor) in [
            ("b", FeedCursor(epoch: last.epoch &+ 1, position: 1)),
            ("c", FeedCursor(epoch: last.epoch, position: 3)),
            ("d", FeedCursor(epoch: last.epoch, position: .max)),
        ] {
            feed.add(try subscription(id, since: cursor))
            // Otherwise an arbitrary cursor would give access to the replay buffer.
            try await expect(id, [.ok, .gap(nil)])
        }
        try await deliver(3...3, on: feed)
        for id in ["b", "c", "d"] { try await expect(id, [.ok, .gap(nil), .event(3)]) }
        // The snapshot includes the effects of the events that could be replayed.
        feed.add(try subscription("e", since: FeedCursor(epoch: last.epoch &+ 1, position: 1))) { cursor in
            ObjectSnapshot([Made.alive(1, 0)], cursor: cursor())
        }
        try await expect("e", [.ok, .gap(nil), .change("added")])
        #expect(try transport.delivered.last?.cursor == FeedCursor(epoch: last.epoch, position: 3))
    }

    /// Returns a replay buffer for about this many events. It only keeps events of at most an eighth of its limit.
    private func buffer(of events: Int) throws -> ReplayBuffer {
        try Made.replayBuffer(of: events)
    }

    @Test func evictedEventsAreCountedInGap() async throws {
        let feed = feed(try buffer(of: 10))
        feed.add(try subscription("a"))
        try await deliver(11...40, on: feed)
        feed.add(try subscription("b", since: try cursor(15)))
        feed.add(try subscription("c", since: try cursor(15), filter: #"["n",["GreaterThan",38]]"#))
        feed.add(try subscription("d", since: try cursor(30)))
        feed.add(
            outbound.open(
                id: "e",
                options: Made.options { $0.since = (try? cursor(15)).map(ClientCursor.plain) },
                wanted: .objects(.core(.Task))
            )
        )
        let kept = (31...40).map { DeliveredFrame.Content.event($0) }
        try await expect("b", [.ok, .gap(15)] + kept)
        try await expect("c", [.ok, .gap(nil), .event(39), .event(40)])
        try await expect("d", [.ok] + kept)
        try await untilTrue("e receives the gap") { try delivered("e").prefix(2) == [.ok, .gap(nil)] }
        // The cursor of the gap follows the missing events.
        let gap = try #require(try transport.delivered.first { $0.id == "b" && $0.content == .gap(15) }?.cursor)
        #expect(gap == (try cursor(30)))
    }

    @Test func evictedGapMakesCountUnknown() async throws {
        let feed = feed(try buffer(of: 10))
        feed.add(try subscription("a"))
        try await deliver(11...12, on: feed)
        feed.update(.offline)
        feed.update(.standing)
        try await deliver(13...40, on: feed)
        feed.update(.offline)
        feed.update(.standing)
        try await deliver(41...41, on: feed)
        feed.add(try subscription("b", since: try cursor(11)))
        feed.add(try subscription("c", since: try cursor(13)))
        try await untilTrue("all came") { try delivered("b").last == .event(41) && delivered("c").last == .event(41) }
        let (b, c) = (try delivered("b"), try delivered("c"))
        #expect(b.prefix(2) == [.ok, .gap(nil)])
        #expect(b.suffix(2) == [.gap(nil), .event(41)])
        let events = c.filter { if case .event = $0 { true } else { false } }.count
        #expect(c.count == events + 3)
        #expect(c[1] == .gap(28 - events))
    }

    @Test func replayBufferIsSharedByAllFeeds() async throws {
        let buffer = try buffer(of: 10)
        let (feed, other) = (feed(buffer), feed(buffer))
        feed.add(try subscription("a"))
        try await deliver(11...12, on: feed)
        try await deliver(13...40, on: other)
        feed.add(try subscription("b", since: FeedCursor(epoch: try cursor(11).epoch, position: 0)))
        try await expect("b", [.ok, .gap(2)])
        try await deliver(41...41, on: feed)
        try await expect("b", [.ok, .gap(2), .event(41)])
    }

    @Test func emptyReplayBufferReportsMissedEventsAsGap() async throws {
        let feed = feed(ReplayBuffer(limit: 0))
        feed.add(try subscription("a"))
        try await deliver(1...3, on: feed)
        feed.add(try subscription("b", since: try cursor(1)))
        feed.add(try subscription("c", since: try cursor(3)))
        try await expect("b", [.ok, .gap(2)])
        try await deliver(4...4, on: feed)
        try await expect("b", [.ok, .gap(2), .event(4)])
        try await expect("c", [.ok, .event(4)])
        // Events that arrive while a snapshot is delivered are still queued for its client.
        transport.setRoom(1)
        feed.add(try subscription("d")) { ObjectSnapshot([Made.alive(1, 0), Made.alive(2, 0)], cursor: $0()) }
        try await settled()
        try await deliver(5...7, on: feed)
        transport.setRoom(.max)
        outbound.pump()
        let delivered: [DeliveredFrame.Content] = [
            .ok, .change("added"), .change("added"), .event(5), .event(6), .event(7),
        ]
        try await expect("d", delivered)
        try await deliver(8...8, on: feed)
        try await expect("d", delivered + [.event(8)])
    }
}
