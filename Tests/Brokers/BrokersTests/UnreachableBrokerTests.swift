import Coaty
import CoatyMQTT
import TestSupport
import Testing

/// Brokers that stop answering, and addresses that do not respond.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(2))) struct UnreachableBrokerTests {
    private static let section = "Brokers that do not answer"
    /// Seconds. The agent sends a ping after this time, and waits for the reply for the same time.
    private static let keepAlive: UInt16 = 5

    @Test func frozenBrokerIsNoticedAndUsedAgain() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let proxy = try await FaultProxy(before: broker.port)
        let agent = try makeAgent(
            options(proxy.port) {
                $0.keepAlive = Self.keepAlive
                $0.checkInterval = .zero
            }
        )
        agent.start()
        try await eventually("the agent is online") { agent.isOnline }
        proxy.freeze()
        let seconds = try await eventually("the agent is offline") { !agent.isOnline }
        #expect(seconds < 2.5 * Double(Self.keepAlive))
        let error = agent.connectionError
        #expect(error?.reason == .noAnswer)
        Report.add(
            "frozen, keepalive \(Self.keepAlive) s: offline after \(Report.seconds(seconds));"
                + " \(error?.reason.rawValue ?? "no error"): \(error?.message ?? "")",
            to: Self.section
        )
        proxy.thaw()
        let back = try await eventually("the agent is online again", within: 60) { agent.isOnline }
        #expect(agent.connectionError == nil)
        Report.add("no longer frozen: online after \(Report.seconds(back))", to: Self.section)
        await agent.stop()
    }

    @Test func agentFailsOverToTheSecondAddress() async throws {
        let brokers = try [BrokerProcess(), BrokerProcess()]
        defer { for broker in brokers { broker.stop() } }
        let proxy = try await FaultProxy(before: brokers[0].port)
        let agent = try makeAgent(
            options(proxy.port) {
                $0.keepAlive = Self.keepAlive
                $0.connectTimeout = .seconds(2)
                $0.fallbackBrokers = [.init(host: "127.0.0.1", port: brokers[1].port)]
            }
        )
        let standing = Standing()
        let received = ReceivedValues<String>()
        let subscription = try agent.subscribe(rawTopic: "news", onStatus: standing.observer(of: "news")) {
            received.append(String(decoding: $0.payload, as: UTF8.self))
        }
        let periods = OnlinePeriods(agent)
        agent.start()
        try await eventually("the agent is online") { agent.isOnline && periods.latest != nil }
        let first = periods.latest
        proxy.freeze()
        let seconds = try await eventually("the agent is online at the second broker", within: 60) {
            agent.isOnline && periods.latest != first
        }
        #expect(standing.count == 1)
        try MQTTTestClient(port: brokers[1].port).publish("news", "from the second")
        try await eventually("an event of the second broker arrives") { received.values == ["from the second"] }
        Report.add(
            "frozen, with a second address: online there after \(Report.seconds(seconds))",
            to: Self.section
        )
        subscription.cancel()
        await agent.stop()
    }

    @Test func unresponsiveAddressIsSkippedAfterConnectTimeout() async throws {
        let silent = try FullListener()
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try makeAgent(
            options(silent.port) {
                $0.connectTimeout = .seconds(2)
                $0.fallbackBrokers = [.init(host: "127.0.0.1", port: broker.port)]
            }
        )
        agent.start()
        let seconds = try await eventually("the agent is online at the second address") { agent.isOnline }
        #expect(seconds >= 2 && seconds < 6)
        Report.add(
            "first address takes no connection, connect timeout 2 s: online at the second after"
                + " \(Report.seconds(seconds))",
            to: Self.section
        )
        await agent.stop()
        withExtendedLifetime(silent) {}
    }
}
