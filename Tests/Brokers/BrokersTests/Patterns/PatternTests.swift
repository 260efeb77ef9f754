import CoatyMQTT
import TestSupport
import Testing

/// Every communication pattern with names that contain dots.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(2))) struct PatternTests {
    /// A pattern, and the nodes that its agents connect to.
    struct Case: Sendable, CustomTestStringConvertible {
        let pattern: Pattern
        let namespace: String
        let sender: Int
        let receiver: Int

        var testDescription: String { "\(pattern.name), node \(sender) to node \(receiver), namespace \(namespace)" }

        /// Each pattern in both directions and in two namespaces.
        static let all = Pattern.all.flatMap { pattern in
            ["-", Dotted.namespace].flatMap { namespace in
                [(1, 2), (2, 1)].map { sender, receiver in
                    Case(pattern: pattern, namespace: namespace, sender: sender, receiver: receiver)
                }
            }
        }
    }

    @Test(arguments: Case.all) func worksAcrossRabbitMQNodes(_ test: Case) async throws {
        let route = Route(
            sender: try Bench.port(ofNode: test.sender),
            receiver: try Bench.port(ofNode: test.receiver),
            namespace: test.namespace,
            dialect: .slashes
        )
        let start = ContinuousClock.now
        try await test.pattern.check(route)
        Report.add(
            row: [
                test.pattern.name, "\(test.sender) to \(test.receiver)", test.namespace,
                Report.seconds(start.secondsUntilNow),
            ],
            columns: ["pattern that works", "nodes", "namespace", "with connecting"],
            to: "Patterns across RabbitMQ nodes"
        )
    }

    /// Mosquitto keeps topics unchanged, so the patterns work with either dialect.
    @Test(arguments: Pattern.all.map(\.name), [TopicDialect.plain, .slashes])
    func worksOnMosquitto(_ name: String, _ dialect: TopicDialect) async throws {
        let pattern = try #require(Pattern.all.first { $0.name == name })
        let broker = try BrokerProcess()
        defer { broker.stop() }
        try await pattern.check(
            Route(sender: broker.port, receiver: broker.port, namespace: Dotted.namespace, dialect: dialect)
        )
    }
}
