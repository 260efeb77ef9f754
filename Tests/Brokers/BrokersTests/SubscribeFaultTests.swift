import Coaty
import CoatyMQTT
import TestSupport
import Testing

/// Brokers that handle SUBSCRIBE packets incorrectly.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(3))) struct SubscribeFaultTests {
    private static let section = "Brokers with faults"

    private func observe(
        _ agent: CommunicationManager,
        _ topics: some Sequence<String>,
        _ standing: Standing
    ) throws -> [Subscription] {
        try topics.map { topic in
            try agent.subscribe(rawTopic: topic, onStatus: standing.observer(of: topic), handler: { _ in })
        }
    }

    @Test func brokerThatTakesEightFiltersKeepsTheConnection() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let proxy = try await FaultProxy(before: broker.port, ["--maximum-filters", "8"])
        let agent = try makeAgent(options(proxy.port))
        let standing = Standing()
        let early = try observe(agent, (0..<100).map { "early/\($0)" }, standing)
        agent.start()
        let seconds = try await eventually("all stand") { agent.isOnline && standing.count == 100 }
        let late = try observe(agent, (0..<100).map { "late/\($0)" }, standing)
        try await eventually("later ones stand too") { standing.count == 200 }
        for subscription in early + late { subscription.cancel() }
        func filters(_ type: String) -> [Int] { proxy.packets.filter { $0.type == type }.map(\.filters) }
        try await eventually("the broker forgets all") { filters("UNSUBSCRIBE").reduce(0, +) == 200 }
        #expect(filters("SUBSCRIBE").allSatisfy { $0 <= 8 } && filters("UNSUBSCRIBE").allSatisfy { $0 <= 8 })
        #expect(proxy.connections == 1 && agent.isOnline)
        Report.add("8 filters in a packet: 100 subscriptions stand after \(Report.seconds(seconds))", to: Self.section)
        await agent.stop()
    }

    @Test func oversizedPacketsAreSplitForTheBroker() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let proxy = try await FaultProxy(before: broker.port, ["--maximum-filters", "8"])
        let agent = try makeAgent(options(proxy.port) { $0.filtersPerPacket = 100 })
        let standing = Standing()
        let subscriptions = try observe(agent, (0..<100).map { "topic/\($0)" }, standing)
        agent.start()
        let seconds = try await eventually("all stand", within: 120, details: { "\(standing.count)" }) {
            agent.isOnline && standing.count == 100
        }
        Report.add(
            "8 filters in a packet, 100 configured: 100 subscriptions stand after \(Report.seconds(seconds))"
                + " and \(proxy.connections) connections",
            to: Self.section
        )
        for subscription in subscriptions { subscription.cancel() }
        await agent.stop()
    }

    @Test func onlyTheFilterThatClosesTheConnectionIsRefused() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let proxy = try await FaultProxy(before: broker.port, ["--cut-filter", "bad"])
        let agent = try makeAgent(options(proxy.port))
        let standing = Standing()
        let topics = (0..<20).map { "before/\($0)" } + ["bad"] + (0..<20).map { "after/\($0)" }
        let subscriptions = try observe(agent, topics, standing)
        agent.start()
        let seconds = try await eventually("all others stand", within: 120, details: { "\(standing.count)" }) {
            agent.isOnline && standing.count == 40 && standing.status(of: "bad") == .refused
        }
        Report.add(
            "one filter cuts the connection: the 40 others stand after \(Report.seconds(seconds))"
                + " and \(proxy.connections) connections",
            to: Self.section
        )
        for subscription in subscriptions { subscription.cancel() }
        await agent.stop()
    }

    /// Regression test: a ping behind thousands of SUBSCRIBE packets was answered too late, and the agent disconnected.
    @Test func slowSubscriptionsDoNotCauseDisconnect() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let proxy = try await FaultProxy(before: broker.port, ["--filter-time", "4"])
        let agent = try makeAgent(options(proxy.port) { $0.keepAlive = 5 })
        let standing = Standing()
        let subscriptions = try observe(agent, (0..<4_000).map { "topic/\($0)" }, standing)
        agent.start()
        let seconds = try await eventually("all stand", within: 120, details: { "\(standing.count)" }) {
            agent.isOnline && standing.count == 4_000
        }
        #expect(seconds > 15 && proxy.connections == 1)
        Report.add(
            "4 ms for each filter, keepalive 5 s: 4,000 subscriptions stand after \(Report.seconds(seconds))"
                + " and \(proxy.connections) connection",
            to: Self.section
        )
        for subscription in subscriptions { subscription.cancel() }
        await agent.stop()
    }

    @Test func publicationsDoNotWaitForSubscriptionAcknowledgements() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe("news")
        let proxy = try await FaultProxy(before: broker.port, ["--drop-suback"])
        let agent = try makeAgent(options(proxy.port))
        let standing = Standing()
        let subscriptions = try observe(agent, ["topic"], standing)
        let start = ContinuousClock.now
        agent.start()
        try agent.publishRaw(.with(topic: "news", payload: "early"))
        try observer.waitFor { $0.text == "early" }
        let published = start.secondsUntilNow
        #expect(standing.status(of: "topic") == .offline && !agent.isOnline)
        try await eventually("the agent is online at its deadline", within: 120) { agent.isOnline }
        Report.add(
            "no SUBACK: a publication arrives after \(Report.seconds(published)), online after"
                + " \(Report.seconds(start.secondsUntilNow))",
            to: Self.section
        )
        for subscription in subscriptions { subscription.cancel() }
        await agent.stop()
    }
}
