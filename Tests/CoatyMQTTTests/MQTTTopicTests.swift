import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

@Suite(.exclusive) struct MQTTTopicTests {
    private static let cases = 3000

    private func randomAddress(_ random: inout SeededGenerator) throws -> EventAddress {
        let type = try #require(CommunicationEventType.allCases.randomElement(using: &random))
        let name = WireName(random.name())
        let eventName: EventName? =
            switch type {
            case .advertise, .update: Bool.random(using: &random) ? .objectType(name) : .coreType(WireName("Task"))
            case .channel, .call, .associate: .name(name)
            default: nil
            }
        return EventAddress(
            type,
            name: eventName,
            namespace: random.name(),
            sourceId: CoatyUUID(wire: random.id()),
            correlationId: type.isTwoWay ? CoatyUUID(wire: random.id()) : nil
        )
    }

    @Test func addressesRoundTrip() throws {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<Self.cases {
            let address = try randomAddress(&random)
            let topic = MQTTTopic.topic(of: address)
            for namespace in [address.namespace, "-"] {
                let read = try #require(MQTTTopic.address(of: topic, namespace: namespace, dialect: .plain), "\(topic)")
                try expectEqual(read, address)
            }
        }
    }

    /// RabbitMQ delivers `.` in topics as `/`.
    @Test func addressesAreReadFromSlashes() throws {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<Self.cases {
            let address = try randomAddress(&random)
            let delivered = MQTTTopic.topic(of: address).replacing(".", with: "/")
            let own = try #require(
                MQTTTopic.address(of: delivered, namespace: address.namespace, dialect: .slashes),
                "\(delivered)"
            )
            try expectEqual(own, address)
            // With any dialect, additional levels of a name are joined.
            if !address.namespace.contains("."), address.name?.text.contains(".") ?? false, address.name?.text != "Task"
            {
                try expectEqual(
                    #require(MQTTTopic.address(of: delivered, namespace: "-", dialect: .plain)),
                    address
                )
            }
        }
    }

    private func expectEqual(_ read: EventAddress, _ written: EventAddress) throws {
        try #require(read.eventType == written.eventType && read.name == written.name)
        try #require(WireName(read.namespace) == WireName(written.namespace))
        try #require(read.sourceId == written.sourceId && read.correlationId == written.correlationId)
    }

    @Test(arguments: [
        "coaty/3/ns/DSC/a/b/c", "coaty/3/ns/DAD/a/b", "coaty/3/ns/ADV:Task/a/b", "coaty/3/ns/ADVx/a",
        "coaty/3/ns/XXX/a",
        "coaty/4/ns/DAD/a", "coaty/3/ns/DSC/a", "coaty/3/ns", "coaty/3/ns/ADVTask/a", "", "x",
    ])
    func otherTopicsAreNotEvents(_ topic: String) {
        for dialect in TopicDialect.allCases {
            #expect(MQTTTopic.address(of: topic, namespace: "ns", dialect: dialect) == nil)
        }
    }

    @Test func foreignNamespaceWithDotsIsReadFromSlashes() throws {
        let topic = "coaty/3/com/example/plant/CHN:a/b/agent"
        let address = try #require(MQTTTopic.address(of: topic, namespace: "com.example", dialect: .slashes))
        #expect(address.namespace == "com.example.plant" && address.name?.text == "a.b")
    }

    @Test func trafficFiltersDoNotOverlap() {
        let all = Set(CommunicationEventType.allCases)
        func filters(_ types: Set<CommunicationEventType>, _ dialect: TopicDialect) -> [String] {
            MQTTTopic.filters(of: .traffic(types), namespace: "a.b", dialect: dialect)
        }
        #expect(filters(all, .plain) == ["coaty/3/a.b/+/+", "coaty/3/a.b/+/+/+"])
        #expect(filters(all, .slashes) == ["coaty/3/a.b/#"])
        #expect(filters([.deadvertise, .call], .slashes) == ["coaty/3/a.b/#"])
        #expect(filters([.discover], .slashes) == ["coaty/3/a.b/DSC/+/+"])
    }

    @Test func rawFiltersMatchWhatTheBrokerDelivers() {
        let session = MQTTTopics(namespace: "-", observesAllNamespaces: false, dialect: .slashes)
        #expect(session.key("a.b/c") == session.key("a/b/c"))
        var filters = TopicTrie()
        filters.insert(session.key("plant.1/+"))
        #expect(filters.filters(matching: session.key("plant/1/x")) == [session.key("plant/1/+")])
    }
}

extension SeededGenerator {
    fileprivate mutating func name() -> String {
        let pieces = ["com", "example", "Job", "x:y", "ä", "e\u{301}", "-", "Ω:"]
        return (0..<Int.random(in: 1...3, using: &self)).map { _ in pieces.randomElement(using: &self) ?? "" }
            .joined(separator: ".")
    }

    /// Returns an id, which contains no dot.
    fileprivate mutating func id() -> String {
        ["someone", "42", "00000000-0000-4000-8000-000000000001", "é"].randomElement(using: &self) ?? ""
    }
}
