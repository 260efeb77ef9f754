import Coaty
import Foundation
import Synchronization
import TestSupport
import Testing

/// A RabbitMQ node that is killed under load. No other test can use the node afterwards, so `Tests/Brokers/run` runs
/// these tests last.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(2))) struct KilledNodeTests {
    private static let section = "RabbitMQ node killed under load"
    private static let channels = 20
    private static let killed = 3

    @Test func agentReconnectsToAnotherNode() async throws {
        let survivors = try [1, 2].map(Bench.port(ofNode:))
        let agent = try makeAgent(
            options(Bench.port(ofNode: Self.killed), dialect: .slashes) {
                $0.fallbackBrokers = [.init(host: "127.0.0.1", port: survivors[1])]
            }
        )
        let received = ReceivedValues<Int>()
        let standing = Standing()
        let subscriptions = try (0..<Self.channels).map { channel in
            agent.subscribe(
                try .channel("load.\(channel)"),
                onStatus: standing.observer(of: "\(channel)"),
                handler: { event in
                    if let number = try? event.data.object.flatMap({ Int($0.name) }) { received.append(number) }
                }
            )
        }
        let periods = OnlinePeriods(agent)
        agent.start()
        try await eventually("the agent is online") { agent.isOnline && periods.latest != nil }
        let firstPeriod = try #require(periods.latest)
        let observer = try MQTTTestClient(port: survivors[1])
        try observer.subscribe("from-agent")
        let load = try await Load(on: survivors[0], channels: Self.channels)
        try await eventually("the load arrives") { received.count > 100 }

        let start = ContinuousClock.now
        kill(try Bench.pid(ofNode: Self.killed), SIGKILL)
        try await eventually("the agent is offline") { !agent.isOnline || periods.latest != firstPeriod }
        Report.add("offline after \(Report.seconds(start.secondsUntilNow))", to: Self.section)
        try await eventually("the agent is online again", within: 60) {
            agent.isOnline && periods.latest != firstPeriod
        }
        let first = load.published + 1
        Report.add("online at another node after \(Report.seconds(start.secondsUntilNow))", to: Self.section)
        #expect(standing.count == Self.channels)
        try await eventually("the next event arrives") { received.values.contains { $0 >= first } }
        Report.add("first event after \(Report.seconds(start.secondsUntilNow))", to: Self.section)
        try await eventually("events of all channels arrive") {
            (received.values.last ?? 0) > first + 5 * Self.channels
        }
        let numbers = received.values.filter { $0 >= first }
        #expect(numbers == Array(first..<(first + numbers.count)), "no event is missing or delivered twice")
        try agent.publishRaw(.with(topic: "from-agent", payload: "here"))
        try observer.waitFor { $0.text == "here" }
        let lost = Set(1..<first).subtracting(received.values).count
        Report.add("\(lost) of \(first) events were published while the agent was offline", to: Self.section)

        await load.end()
        for subscription in subscriptions { subscription.cancel() }
        await agent.stop()
    }

    /// An agent that publishes a hundred numbered events per second, to channels in turn.
    private final class Load: Sendable {
        private let agent: CommunicationManager
        private let counter: Counter
        private let task: Task<Void, any Error>

        private final class Counter: Sendable {
            let number = Atomic(0)
        }

        init(on port: UInt16, channels: Int) async throws {
            let agent = try makeAgent(options(port, dialect: .slashes))
            let counter = Counter()
            self.agent = agent
            self.counter = counter
            agent.start()
            task = Task {
                while !Task.isCancelled {
                    let next = counter.number.load(ordering: .relaxed) + 1
                    let object = makeObject("com.example.Load", name: "\(next)")
                    try agent.publishChannel(.with(object: object, channelId: "load.\(next % channels)"))
                    counter.number.store(next, ordering: .relaxed)
                    // The rate of the load.
                    try await Task.sleep(for: .milliseconds(10))
                }
            }
            try await eventually("the load is online") { agent.isOnline }
        }

        /// The number of the latest event.
        var published: Int { counter.number.load(ordering: .relaxed) }

        func end() async {
            task.cancel()
            await agent.stop()
        }
    }
}
