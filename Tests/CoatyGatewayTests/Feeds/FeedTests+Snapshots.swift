import Coaty
import TestSupport
import Testing

@testable import Feeds

/// Subscriptions that start with a snapshot.
extension FeedTests {
    /// Changes that arrive before the broker's acknowledgement are delivered after the snapshot.
    @Test func snapshotIsKeptUntilBrokerAcknowledges() async throws {
        let feed = feed(nil, nil)
        feed.add(try subscription("a")) { ObjectSnapshot([Made.alive(1, 0)], cursor: $0()) }
        try await settled()
        feed.deliver(try Made.change(.changed, 1, 1, from: 0))
        #expect(transport.frames.isEmpty)
        feed.update(.standing)
        feed.deliver(try Made.change(.removed, 1, 1))
        try await expect("a", [.ok, .change("added"), .change("changed"), .change("removed")])
    }

    /// A client that resumed from a cursor before the snapshot would miss the snapshot.
    @Test func framesBeforeSnapshotHaveNoCursor() async throws {
        let feed = feed()
        try await deliver(1...1, on: feed)
        feed.update(.offline)
        let unknown = FeedCursor(epoch: 1, position: 1)
        for (id, since) in [("a", nil), ("b", unknown)] {
            feed.add(try subscription(id, since: since)) {
                ObjectSnapshot([Made.alive(1, 0), Made.alive(2, 0)], cursor: $0())
            }
            try await expect(id, [.ok, .gap(nil), .change("added"), .change("added")])
            let cursors = try transport.delivered.filter { $0.id == id }.map(\.cursor?.position)
            #expect(cursors == [nil, nil, nil, 2])
        }
        let last = try #require(try transport.delivered.last?.cursor)
        feed.add(try subscription("c", since: last)) { ObjectSnapshot([Made.alive(1, 0)], cursor: $0()) }
        try await expect("c", [.ok])
    }

    /// Objects are added, changed and removed while a client reads the snapshot slowly. In the end, the client has the
    /// current objects.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func snapshotAndChangesYieldCurrentObjects(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let feed = feed()
        var there: [Int: Int] = [:]
        for key in 0..<(OutboundQueue.releaseBatch * 3) { there[key] = 0 }
        transport.setRoom(1)
        let objects = there.map { Made.alive($0.key, $0.value * 1000 + $0.key) }
        feed.add(try subscription("a")) { ObjectSnapshot(objects, cursor: $0()) }
        try await settled()
        func number(_ key: Int, _ value: Int) -> Int { value * 1000 + key }
        for value in 1...300 {
            let key = Int.random(in: 0..<300, using: &random)
            if let earlier = there[key] {
                if Bool.random(using: &random) {
                    feed.deliver(try Made.change(.removed, key, number(key, earlier)))
                    there[key] = nil
                } else {
                    feed.deliver(try Made.change(.changed, key, number(key, value), from: number(key, earlier)))
                    there[key] = value
                }
            } else {
                feed.deliver(try Made.change(.added, key, number(key, value)))
                there[key] = value
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                transport.setRoom(Int.random(in: 0..<5, using: &random))
                outbound.pump()
                await Task.yield()
            }
        }
        transport.setRoom(.max)
        outbound.pump()
        let count = 1 + OutboundQueue.releaseBatch * 3 + 300
        try await untilTrue("all came") { transport.frames.count >= count }
        var known: [Int: Int] = [:]
        for frame in try transport.delivered.dropFirst() {
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

    /// While a filter excludes the objects of a snapshot, the outbound queue is not locked.
    @Test func filteredSnapshotDoesNotBlockOtherSubscriptions() async throws {
        let feed = feed()
        let objects = (0..<10_000).map { Made.alive($0, 0) }
        feed.add(try subscription("a", filter: #"["n",["GreaterThan",0]]"#)) { ObjectSnapshot(objects, cursor: $0()) }
        try await untilTrue("a begins") { try delivered("a").first == .ok }
        feed.deliver(try Made.change(.added, 1, 1))
        let other = outbound.begun(id: "b")
        for number in 1...3 { other.take(try Made.event(1, number)) }
        // The events are delivered immediately, while the snapshot is still being read.
        #expect(try delivered("b") == [.event(1), .event(2), .event(3)])
        try await expect("a", [.ok, .change("added")])
    }

    @Test func filteredReplayDoesNotBlockOtherSubscriptions() async throws {
        let feed = feed()
        let count = 1000
        try await deliver(0...count, on: feed)
        let begin = try await cursorOfOk(of: feed)
        feed.add(try subscription("a", since: begin, filter: #"["n",["GreaterThan",\#(count - 1)]]"#))
        try await untilTrue("a begins") { try delivered("a").first == .ok }
        let other = outbound.begun(id: "b")
        for number in 1...3 { other.take(try Made.event(1, number)) }
        #expect(try delivered("b") == [.event(1), .event(2), .event(3)])
        try await expect("a", [.ok, .event(count)])
    }

    /// Returns the cursor that the first subscription of a feed would get, which precedes all events.
    private func cursorOfOk(of feed: Feed) async throws -> FeedCursor {
        let transport = SteeredTransport()
        feed.add(OutboundQueue(transport).open(id: nil))
        try await settled()
        let last = try #require(try transport.delivered.first?.cursor)
        return FeedCursor(epoch: last.epoch, position: 0)
    }
}
