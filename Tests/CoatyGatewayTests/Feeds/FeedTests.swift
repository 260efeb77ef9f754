import Coaty
import Synchronization
import TestSupport
import Testing

@testable import Feeds

/// Delivery, start and resumption of the subscriptions of one feed.
@Suite(.exclusive, .closesOutboundQueues) struct FeedTests {
    let transport = SteeredTransport()
    let outbound: OutboundQueue
    let buffer = ReplayBuffer(limit: 1 << 20)

    init() {
        outbound = OutboundQueue(transport)
    }

    func feed(_ buffer: ReplayBuffer? = nil, _ status: SubscriptionStatus? = .standing) -> Feed {
        let feed = Feed(isResumable: true, memory: buffer ?? self.buffer)
        if let status { feed.update(status) }
        return feed
    }

    func subscription(_ id: String, since: FeedCursor? = nil, filter: String? = nil) throws -> ClientSubscription {
        var options = SubscriptionOptions()
        options.since = since.map(ClientCursor.plain)
        options.filter = try filter.map(Made.condition)
        return outbound.open(id: id, options: options)
    }

    func deliver(_ numbers: ClosedRange<Int>, on feed: Feed) async throws {
        for number in numbers { feed.deliver(try Made.event(number, number)) }
        try await settled()
    }

    func delivered(_ id: String) throws -> [DeliveredFrame.Content] {
        try transport.delivered.filter { $0.id == id }.map(\.content)
    }

    func cursor(_ number: Int) throws -> FeedCursor {
        try #require(try transport.delivered.last { $0.event == number }?.cursor)
    }

    /// Waits until a subscription has received as many frames as expected, and compares them.
    func expect(
        _ id: String,
        _ expected: [DeliveredFrame.Content],
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        try await untilTrue("\(id) receives everything") { try delivered(id).count >= expected.count }
        #expect(try delivered(id) == expected, sourceLocation: location)
    }

    // MARK: - Start

    /// Events that arrive before the broker's acknowledgement are delivered after `ok`, whose cursor precedes them.
    @Test func subscriptionBeginsWhenBrokerAcknowledges() async throws {
        let feed = feed(nil, nil)
        feed.add(try subscription("a"))
        try await deliver(1...2, on: feed)
        feed.add(try subscription("b"))
        try await deliver(3...3, on: feed)
        #expect(transport.frames.isEmpty)
        feed.update(.standing)
        feed.add(try subscription("c"))
        try await deliver(4...4, on: feed)
        try await expect("a", [.ok, .event(1), .event(2), .event(3), .event(4)])
        try await expect("b", [.ok, .event(3), .event(4)])
        try await expect("c", [.ok, .event(4)])
        let begun = try transport.delivered.filter { $0.content == .ok }
        #expect(begun.map(\.id) == ["a", "b", "c"])
        #expect(begun.map(\.cursor?.position) == [0, 2, 3])
        feed.add(try subscription("d", since: begun[1].cursor))
        try await expect("d", [.ok, .event(3), .event(4)])
    }

    /// A subscription that starts offline gets a gap to resume from, and no cursor before it.
    @Test func offlinePeriodIsReportedAsGap() async throws {
        let feed = feed()
        feed.add(try subscription("a"))
        try await deliver(1...1, on: feed)
        feed.update(.offline)
        feed.add(try subscription("b"))
        feed.update(.standing)
        try await deliver(2...2, on: feed)
        feed.add(try subscription("c"))
        try await expect("a", [.ok, .event(1), .gap(nil), .event(2)])
        try await expect("b", [.ok, .gap(nil), .event(2)])
        try await expect("c", [.ok])
        let b = try transport.delivered.filter { $0.id == "b" }
        #expect(b.map(\.cursor?.position) == [nil, 2, 3])
        feed.add(try subscription("d", since: b[1].cursor))
        try await expect("d", [.ok, .event(2)])
    }

    @Test func pendingSubscriptionGetsGapWhenOffline() async throws {
        let feed = feed(nil, nil)
        feed.add(try subscription("a"))
        feed.update(.offline)
        try await expect("a", [.ok, .gap(nil)])
        #expect(try transport.delivered.map(\.cursor?.position) == [0, 1])
    }

    @Test func brokerRefusalIsReportedAsError() async throws {
        let feed = feed(nil, nil)
        feed.add(try subscription("a"))
        feed.update(.refused)
        feed.add(try subscription("b"))
        feed.update(.standing)
        feed.add(try subscription("c"))
        try await deliver(1...1, on: feed)
        // After a reconnect, the broker may refuse a subscription that it had granted.
        feed.update(.offline)
        feed.update(.refused)
        try await deliver(2...2, on: feed)
        try await expect("a", [.error])
        try await expect("b", [.error])
        try await expect("c", [.ok, .event(1), .gap(nil), .error])
    }

    @Test func endOfFeedEndsSubscriptions() async throws {
        let feed = feed(nil, nil)
        let closed = Mutex(0)
        feed.hold { closed.withLock { $0 += 1 } }
        feed.add(try subscription("a"))
        feed.end()
        feed.end()
        feed.close()
        feed.add(try subscription("b"))
        feed.update(.standing)
        try await deliver(1...1, on: feed)
        try await expect("a", [.error])
        try await expect("b", [.error])
        feed.hold { closed.withLock { $0 += 10 } }
        #expect(closed.withLock(\.self) == 11)
        let other = self.feed()
        other.add(try subscription("c"))
        other.end()
        try await expect("c", [.ok, .done("withdrawn")])
    }
}
