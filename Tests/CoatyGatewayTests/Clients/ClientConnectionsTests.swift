import Coaty
import TestSupport
import Testing

@testable import Feeds

@Suite(.exclusive, .closesOutboundQueues) struct ClientConnectionsTests {
    private let connections = ClientConnections()
    private let transport = SteeredTransport()
    private let wanted = Observation.channel(WireName("c"))

    private func subscription(
        _ id: String?,
        on outbound: OutboundQueue,
        _ change: (inout SubscriptionOptions) -> Void = { _ in }
    ) -> ClientSubscription {
        outbound.open(id: id, options: Made.options(change), wanted: wanted, isHeld: false)
    }

    private func deliver(_ numbers: ClosedRange<Int>, to subscription: ClientSubscription) throws {
        for number in numbers { subscription.take(try Made.event(number, number)) }
    }

    @Test func deliveredCountIsKeptAfterDisconnect() throws {
        let outbounds = [OutboundQueue(transport), OutboundQueue(transport)]
        let transports = [ClientConnections.Transport.webSocket, .sse]
        let numbers = zip(outbounds, transports).map { connections.add($0, $1, from: "") }
        #expect(numbers == [1, 2])
        try deliver(1...3, to: subscription("a", on: outbounds[0]))
        let other = subscription(nil, on: outbounds[1])
        try deliver(1...2, to: other)
        other.takeGap()
        // A request does not count as a subscription, nor its responses as events.
        let request = outbounds[0].open(id: "r", isHeld: false)
        _ = outbounds[0].append(response: ServerFrame(.response, members: []), to: request)
        var statistics = connections.statistics
        #expect(statistics.connections == 2 && statistics.subscriptions == 2)
        #expect(statistics.delivered == 5 && statistics.dropped == 0 && statistics.queued == 0)
        #expect(statistics.slowConsumers.isEmpty)

        for (outbound, number) in zip(outbounds, numbers) {
            outbound.close()
            connections.remove(number)
            connections.remove(number)
        }
        try deliver(1...1, to: other)
        statistics = connections.statistics
        #expect(statistics.connections == 0 && statistics.subscriptions == 0 && statistics.delivered == 5)
    }

    @Test func clientThatDoesNotReadIsSlowConsumerUntilDisconnect() throws {
        let outbound = OutboundQueue(transport)
        let number = connections.add(outbound, .webSocket, from: "")
        let slow = subscription("slow", on: outbound) { $0.buffer = 4 }
        transport.setRoom(1)
        try deliver(1...7, to: slow)
        // One is delivered, four are queued, two are dropped.
        var statistics = connections.statistics
        #expect(statistics.delivered == 1 && statistics.dropped == 2 && statistics.queued == 4)
        let consumer = try #require(statistics.slowConsumers.first)
        #expect(consumer.connection == number && consumer.transport == .webSocket)
        let subscription = consumer.subscription
        #expect(subscription.id == "slow" && subscription.event == .channel && subscription.overflow == .dropOldest)
        #expect(subscription.queued == 4 && subscription.dropped == 2 && subscription.queuedBytes > 0)

        // The gap and one event are written; the rest stays queued.
        transport.setRoom(2)
        outbound.pump()
        statistics = connections.statistics
        #expect(try transport.delivered.map(\.content) == [.event(1), .gap(2), .event(4)])
        #expect(statistics.delivered == 2 && statistics.dropped == 2 && statistics.queued == 3)
        transport.setRoom(.max)
        outbound.pump()
        statistics = connections.statistics
        #expect(statistics.delivered == 5 && statistics.dropped == 2 && statistics.queued == 0)
        #expect(statistics.slowConsumers.map(\.subscription.queued) == [0], "it has dropped events")
        #expect(statistics.slowConsumers.first?.subscription.queuedBytes == 0)

        outbound.close()
        connections.remove(number)
        #expect(connections.statistics.slowConsumers.isEmpty && connections.statistics.dropped == 2)
    }

    @Test(arguments: [SubscriptionOptions.Overflow.latest, .close]) func eachOverflowPolicyCountsDroppedEvents(
        _ overflow: SubscriptionOptions.Overflow
    ) throws {
        let outbound = OutboundQueue(transport)
        _ = connections.add(outbound, .webSocket, from: "")
        let slow = subscription("slow", on: outbound) { ($0.overflow, $0.buffer) = (overflow, 2) }
        transport.setRoom(0)
        for number in 1...5 { slow.take(try Made.event(number % 2, number)) }
        // `latest` keeps the newest event of each of the two objects, `close` keeps none.
        #expect(connections.statistics.dropped == 3)
        #expect(connections.statistics.queued == (overflow == .latest ? 2 : 0))
    }

    @Test func throttledEventsAreNeitherDroppedNorQueued() throws {
        let outbound = OutboundQueue(transport)
        _ = connections.add(outbound, .webSocket, from: "")
        let throttled = subscription("t", on: outbound) { $0.throttle = Throttle(interval: .seconds(3600)) }
        for number in 1...5 { throttled.take(try Made.event(1, number)) }
        let statistics = connections.statistics
        #expect(statistics.delivered == 1 && statistics.dropped == 0 && statistics.queued == 0)
        #expect(statistics.slowConsumers.isEmpty)
        outbound.end(throttled, .withdrawn)
        #expect(connections.statistics.delivered == 2, "the last event is delivered when the subscription ends")
    }

    @Test func replayedEventsAreCountedWhenDelivered() async throws {
        let buffer = try Made.replayBuffer(of: 10)
        let feed = Feed(isResumable: true, memory: buffer)
        feed.update(.standing)
        let outbound = OutboundQueue(transport)
        _ = connections.add(outbound, .webSocket, from: "")
        feed.add(subscription("first", on: outbound))
        for number in 11...30 { feed.deliver(try Made.event(1, number)) }
        try await untilTrue("the first batch is delivered") { connections.statistics.delivered == 20 }

        // The replay buffer keeps ten events; earlier ones are a gap, and this connection has not dropped them.
        let since = try #require(try transport.delivered.first { $0.event == 11 }?.cursor)
        let resumed = subscription("resumed", on: outbound) { $0.since = .plain(since) }
        transport.setRoom(2)
        feed.add(resumed)
        try await untilTrue("all but two waits") { transport.frames.count == 21 + 2 }
        try await settled()
        #expect(try transport.delivered.suffix(2).map(\.content) == [.ok, .gap(9)])
        #expect(connections.statistics.dropped == 0 && connections.statistics.delivered == 20)
        #expect(connections.statistics.slowConsumers.map(\.subscription.queued) == [10])
        feed.remove(resumed)
        outbound.close(resumed)
        #expect(connections.statistics.slowConsumers.isEmpty)
    }

    @Test func eventsEvictedBeforeSlowClientReadsCountAsDropped() async throws {
        let buffer = try Made.replayBuffer(of: 10)
        let feed = Feed(isResumable: true, memory: buffer)
        feed.update(.standing)
        let probe = SteeredTransport()
        feed.add(OutboundQueue(probe).open(id: nil))
        for number in 11...15 { feed.deliver(try Made.event(1, number)) }
        try await settled()
        let outbound = OutboundQueue(transport)
        _ = connections.add(outbound, .webSocket, from: "")
        let since = try #require(try probe.delivered.first { $0.event == 11 }?.cursor)
        transport.setRoom(1)
        let slow = subscription("slow", on: outbound) { ($0.since, $0.buffer) = (.plain(since), 2) }
        feed.add(slow)
        try await untilTrue("it has begun") { transport.frames.count == 1 }
        for number in 16...40 { feed.deliver(try Made.event(1, number)) }
        try await settled()
        // Includes events that were read from the replay buffer but could not be written.
        let slowConsumers = connections.statistics.slowConsumers.map(\.subscription)
        #expect(slowConsumers.map { $0.queued + $0.dropped } == [29])
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("the rest is delivered") { try transport.delivered.last?.event == 40 }
        let delivered = try transport.delivered.compactMap(\.event)
        let gaps = try transport.delivered.reduce(0) {
            if case .gap(let dropped?) = $1.content { $0 + dropped } else { $0 }
        }
        #expect(delivered.count + gaps == 29)
        let missed = (12...15).filter { !delivered.contains($0) }.count
        #expect(connections.statistics.dropped == gaps - missed && connections.statistics.delivered == delivered.count)
        feed.close()
    }

    @Test func worstSlowConsumersAreReported() throws {
        transport.setRoom(0)
        for count in 1...50 {
            let outbound = OutboundQueue(transport)
            _ = connections.add(outbound, .webSocket, from: "")
            try deliver(1...count, to: subscription("\(count)", on: outbound) { $0.buffer = 40 })
        }
        let worst = connections.statistics.slowConsumers
        #expect(worst.map(\.subscription.dropped) == (1...10).reversed() + Array(repeating: 0, count: 10))
        #expect(worst.map(\.subscription.queued) == Array(repeating: 40, count: 11) + (31...39).reversed())
        #expect(connections.statistics.queued == (1...40).reduce(0, +) + 10 * 40)
    }
}
