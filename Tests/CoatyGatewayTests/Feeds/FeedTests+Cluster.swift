import Coaty
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Cluster
@testable import Feeds

/// Resumption at another gateway of a cluster.
extension FeedTests {
    /// The feeds of the same events at two gateways of a cluster, with a clock that the test sets. The second gateway was
    /// started 30 s after the first one.
    private final class Pair: Sendable {
        let feeds: [Feed]
        private let members: [ClusterCursors]
        private let time: Reference

        private final class Reference: Sendable {
            let value = Mutex(Duration.seconds(100))
        }

        /// - Parameters:
        ///   - names: the names of the observations.
        ///   - secrets: the keys of the gateways.
        init(
            _ buffer: ReplayBuffer,
            names: [String] = ["channelId:c", "channelId:c"],
            secrets: [String] = ["a", "a"]
        ) throws {
            let time = Reference()
            let starts = [Duration.zero, .seconds(30)]
            let members = try secrets.indices.map { index in
                ClusterCursors(
                    try ClusterKey(secret: String(repeating: secrets[index], count: 32), "test"),
                    session: UInt16(index),
                    clock: { time.value.withLock(\.self) - starts[index] },
                    translate: { $1 == 1 - index ? $0 + starts[1 - index] - starts[index] : nil }
                )
            }
            self.time = time
            self.members = members
            feeds = zip(members, names).map { member, name in
                Feed(isResumable: true, memory: buffer, places: FeedPlaces(member, name: name))
            }
            for feed in feeds { feed.update(.standing) }
            advance(.seconds(20))
        }

        /// Returns a new feed of the second gateway.
        func lateFeed(_ buffer: ReplayBuffer) -> Feed {
            let feed = Feed(isResumable: true, memory: buffer, places: FeedPlaces(members[1], name: "channelId:c"))
            feed.update(.standing)
            return feed
        }

        /// Returns a new feed of the second gateway, whose turns only the test runs.
        func idleFeed(_ buffer: ReplayBuffer) -> Feed {
            let feed = Feed(
                isResumable: true,
                memory: buffer,
                workers: WorkerPool(name: "idle", threads: 1),
                counts: FeedCounts(logger: Logger(label: "test")),
                places: FeedPlaces(members[1], name: "channelId:c")
            )
            feed.update(.standing)
            return feed
        }

        func advance(_ duration: Duration) { time.value.withLock { $0 += duration } }
    }

    private func event(_ number: Int, _ hash: UInt64? = nil) throws -> PendingEvent {
        let event = try Made.event(number, number)
        return PendingEvent(size: event.footprint, hash: hash ?? UInt64(number) &* 0x9E37_79B9_7F4A_7C15) { event }
    }

    private func deliver(_ numbers: ClosedRange<Int>, on pair: Pair) throws {
        for number in numbers {
            for feed in pair.feeds { feed.deliver(try event(number)) }
            pair.advance(.milliseconds(700))
        }
    }

    private func text(_ id: String, _ content: DeliveredFrame.Content) async throws -> String {
        try await untilTrue("\(id) receives \(content)") { try delivered(id).contains(content) }
        let frame = try transport.frames.last {
            try DeliveredFrame($0).content == content && DeliveredFrame($0).id == id
        }
        let json = try Payload(Array(try #require(frame).utf8)).json
        return try #require(json["cursor"]?.string)
    }

    private func resume(_ id: String, _ text: String, on feed: Feed, filter: String? = nil) throws {
        var options = SubscriptionOptions()
        let cursor = try #require(ClientCursor(text))
        options.since = cursor
        options.filter = try filter.map(Made.condition)
        feed.add(outbound.open(id: id, options: options))
    }

    @Test func clientResumesAtAnotherGateway() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        let begun = try await text("a", .ok)
        try deliver(1...3, on: pair)
        let third = try await text("a", .event(3))
        #expect(third.utf8.count == 64)
        try deliver(4...6, on: pair)
        try resume("b", third, on: pair.feeds[1])
        try await expect("b", [.ok, .event(4), .event(5), .event(6)])
        // From there back to the first one.
        let fifth = try await text("b", .event(5))
        try resume("c", fifth, on: pair.feeds[0])
        try await expect("c", [.ok, .event(6)])
        // The cursor of a subscription that has received nothing.
        try resume("d", begun, on: pair.feeds[1])
        try await expect("d", [.ok, .gap(nil)])
        pair.advance(.seconds(10))
        pair.feeds[0].add(try subscription("e"))
        let silent = try await text("e", .ok)
        pair.advance(.seconds(10))
        try deliver(7...8, on: pair)
        try resume("f", silent, on: pair.feeds[1])
        try await expect("f", [.ok, .event(7), .event(8)])
    }

    /// A cursor is found by events of which only the hashes are kept.
    @Test func cursorsAreFoundByEvictedEvents() async throws {
        let buffer = try Made.replayBuffer(of: 20)
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...20, on: pair)
        let twentieth = try await text("a", .event(20))
        try deliver(21...22, on: pair)
        try resume("b", twentieth, on: pair.feeds[1])
        try await expect("b", [.ok, .event(21), .event(22)])
        // Without the events after it, its place is of no use.
        try deliver(23...60, on: pair)
        try resume("c", twentieth, on: pair.feeds[1])
        try await expect("c", [.ok, .gap(nil)])
    }

    /// Its own cursors are resumed as without a cluster.
    @Test func sealedCursorsAreKnownAtTheirGateway() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...1, on: pair)
        let first = try await text("a", .event(1))
        pair.feeds[0].noteGap()
        try deliver(2...2, on: pair)
        try resume("b", first, on: pair.feeds[0])
        try await expect("b", [.ok, .gap(nil), .event(2)])
    }

    /// The broker may deliver an event to this gateway later than to the other one.
    @Test func eventThatHasNotArrivedIsAwaited() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...2, on: pair)
        pair.feeds[0].deliver(try event(3))
        let third = try await text("a", .event(3))
        pair.advance(.milliseconds(50))
        try resume("b", third, on: pair.feeds[1])
        try await settled()
        #expect(try delivered("b").isEmpty)
        pair.feeds[1].deliver(try event(3))
        pair.feeds[1].deliver(try event(4))
        try await expect("b", [.ok, .event(4)])
        // It does not arrive.
        pair.feeds[0].deliver(try event(5))
        let fifth = try await text("a", .event(5))
        try resume("c", fifth, on: pair.feeds[1])
        try await expect("c", [.ok, .gap(nil)])
    }

    @Test func awaitingSubscriptionCanEnd() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        pair.feeds[0].deliver(try event(1))
        let first = try await text("a", .event(1))
        for id in ["b", "c"] { try resume(id, first, on: pair.feeds[1]) }
        try await settled()
        pair.feeds[1].end()
        try await expect("b", [.error])
        try await expect("c", [.error])
    }

    @Test func alteredCursorsAreUnknown() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...3, on: pair)
        let second = try await text("a", .event(2))
        for (index, place) in [0, 20, 40, 62].enumerated() {
            var characters = Array(second)
            characters[place] = characters[place] == "A" ? "B" : "A"
            for (number, feed) in pair.feeds.enumerated() {
                try resume("altered \(index) \(number)", String(characters), on: feed)
                try await expect("altered \(index) \(number)", [.ok, .gap(nil)])
            }
        }
        // Without a cluster, and with the key of another one, it is unknown, too.
        let plain = feed()
        try resume("plain", second, on: plain)
        try await expect("plain", [.ok, .gap(nil)])
        let other = try Pair(buffer, secrets: ["a", "b"])
        other.feeds[1].deliver(try event(2))
        try resume("other", second, on: other.feeds[1])
        try await expect("other", [.ok, .gap(nil)])
    }

    /// Otherwise a cursor would give access to earlier events of all observations.
    @Test func cursorOfAnotherObservationIsUnknown() async throws {
        let pair = try Pair(buffer, names: ["channelId:c", "channelId:d"])
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...3, on: pair)
        try resume("b", try await text("a", .event(2)), on: pair.feeds[1])
        try await expect("b", [.ok, .gap(nil)])
    }

    @Test func repeatedEventsAreReportedAsGap() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        for number in 1...4 {
            for feed in pair.feeds { feed.deliver(try event(number, 1)) }
            pair.advance(.seconds(1))
        }
        try resume("b", try await text("a", .event(3)), on: pair.feeds[1])
        try await expect("b", [.ok, .gap(nil)])
    }

    /// A feed that has missed events, or was not there, can't tell what the client has received.
    @Test func incompleteFeedsReportAGap() async throws {
        for incompleteness in ["late", "gap", "offline", "order"] {
            let buffer = try Made.replayBuffer(of: 40)
            let pair = try Pair(buffer)
            let id = { (number: Int) in "\(incompleteness) \(number)" }
            let late = pair.lateFeed(buffer)
            pair.feeds[0].add(try subscription(id(1)))
            try deliver(1...2, on: pair)
            switch incompleteness {
            case "late":
                for feed in [pair.feeds[0], late] { feed.deliver(try event(3)) }
                try resume(id(2), try await text(id(1), .event(3)), on: late)
            case "gap", "offline":
                if incompleteness == "gap" { pair.feeds[1].noteGap() } else { pair.feeds[1].update(.offline) }
                pair.feeds[1].update(.standing)
                try deliver(3...3, on: pair)
                try resume(id(2), try await text(id(1), .event(3)), on: pair.feeds[1])
            default:
                for number in [3, 4] { pair.feeds[0].deliver(try event(number)) }
                for number in [4, 3] { pair.feeds[1].deliver(try event(number)) }
                pair.advance(.seconds(1))
                try resume(id(2), try await text(id(1), .event(3)), on: pair.feeds[1])
            }
            try await expect(id(2), [.ok, .gap(nil)])
            late.close()
        }
    }

    /// A gap after the cursor is delivered in its place.
    @Test func laterGapIsDeliveredInPlace() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...3, on: pair)
        pair.feeds[1].noteGap()
        try deliver(4...4, on: pair)
        try resume("b", try await text("a", .event(2)), on: pair.feeds[1])
        try await expect("b", [.ok, .event(3), .gap(nil), .event(4)])
    }

    @Test func filtersApplyToResumedEvents() async throws {
        let pair = try Pair(buffer)
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...6, on: pair)
        try resume("b", try await text("a", .event(2)), on: pair.feeds[1], filter: #"["n",["GreaterThan",4]]"#)
        try await expect("b", [.ok, .event(5), .event(6)])
    }

    /// Records that are queued behind the subscription are found, too, and delivered once.
    @Test func queuedRecordsAreDeliveredOnce() async throws {
        let pair = try Pair(buffer)
        let idle = pair.idleFeed(buffer)
        pair.advance(.seconds(20))
        pair.feeds[0].add(try subscription("a"))
        try deliver(1...2, on: pair)
        let second = try await text("a", .event(2))
        pair.advance(.milliseconds(-1400))
        try resume("b", second, on: idle)
        for number in 1...3 {
            idle.deliver(try event(number))
            pair.advance(.milliseconds(700))
        }
        while case .again = idle.turn() {}
        try await expect("b", [.ok, .event(3)])
    }

    /// A gap that joins the previous one counts from the later one.
    @Test func repeatedGapIsNotForgotten() async throws {
        let pair = try Pair(buffer)
        let idle = pair.idleFeed(buffer)
        pair.feeds[0].add(try subscription("a"))
        idle.noteGap()
        pair.advance(.seconds(20))
        idle.noteGap()
        for feed in [pair.feeds[0], idle] { feed.deliver(try event(1)) }
        let first = try await text("a", .event(1))
        pair.advance(.seconds(1))
        try resume("b", first, on: idle)
        while case .again = idle.turn() {}
        try await expect("b", [.ok, .gap(nil)])
    }
}
