import Coaty
import Glibc
import TestSupport
import Testing

/// 5,000 subscriptions of one agent, when it starts and across a lost connection.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(10))) struct ManySubscriptionsTests {
    private static let count = 5000
    private static let section = "5,000 subscriptions"
    private static let columns = ["broker", "step", "online", "all stand", "standing when online", "processor time"]
    /// The maximum time in seconds; RabbitMQ itself takes up to 20.
    private static let limit = 180.0

    @Test func manySubscriptionsWorkOnMosquitto() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        try await check(on: broker.port, "mosquitto")
    }

    @Test func manySubscriptionsWorkOnRabbitMQ() async throws {
        try await check(on: Bench.port(ofNode: 1), "RabbitMQ")
    }

    private func check(on port: UInt16, _ broker: String) async throws {
        // The proxy can cut the connection while the broker keeps running.
        let proxy = try await FaultProxy(before: port)
        let agent = try makeAgent(options(proxy.port, dialect: .slashes))
        let standing = Standing()
        let received = ReceivedValues<String>()
        let subscriptions = try (0..<Self.count).map { number in
            agent.subscribe(
                try .channel("many.\(number)"),
                onStatus: standing.observer(of: "\(number)"),
                handler: { received.append($0.channelId) }
            )
        }
        let periods = OnlinePeriods(agent)

        try await measure(agent, periods, standing, [broker, "start"]) { agent.start() }
        try await checkDelivery(on: port, received)
        try await measure(agent, periods, standing, [broker, "connection cut"]) { proxy.cut() }
        try await checkDelivery(on: port, received)
        #expect(proxy.connections == 2)

        for subscription in subscriptions { subscription.cancel() }
        await agent.stop()
    }

    private func measure(
        _ agent: CommunicationManager,
        _ periods: OnlinePeriods,
        _ standing: Standing,
        _ cells: [String],
        _ action: () -> Void
    ) async throws {
        let previous = periods.latest
        let (start, processorStart) = (ContinuousClock.now, Self.processorTime)
        action()
        try await eventually("the agent is online", within: Self.limit, details: { "\(standing.count) stand" }) {
            agent.isOnline && periods.latest != previous
        }
        let online = start.secondsUntilNow
        let standingWhenOnline = standing.count
        #expect(standingWhenOnline == Self.count)
        try await eventually("all stand", within: Self.limit, details: { "\(standing.count) stand" }) {
            standing.count == Self.count
        }
        let seconds = [online, start.secondsUntilNow].map(Report.seconds)
        let processor = Report.seconds(Self.processorTime - processorStart)
        Report.add(
            row: cells + seconds + ["\(standingWhenOnline)", processor],
            columns: Self.columns,
            to: Self.section
        )
    }

    /// Checks that events of the first, a middle and the last subscription arrive once.
    private func checkDelivery(on port: UInt16, _ received: ReceivedValues<String>) async throws {
        let publisher = try makeAgent(options(port, dialect: .slashes))
        publisher.start()
        try await eventually("the publisher is online") { publisher.isOnline }
        let channels = [0, Self.count / 2, Self.count - 1].map { "many.\($0)" }
        let before = received.count
        for channel in channels {
            try publisher.publishChannel(.with(object: makeObject("com.example.Many"), channelId: channel))
        }
        try await eventually("events arrive") { received.count >= before + channels.count }
        #expect(Array(received.values[before...]) == channels)
        await publisher.stop()
    }

    /// The processor time of this process so far, in seconds.
    private static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
