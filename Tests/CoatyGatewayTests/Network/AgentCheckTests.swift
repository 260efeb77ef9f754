import Coaty
import CoatyMQTT
import Foundation
import Testing
import TestSupport

@testable import CoatyTestSupport
@testable import Network

/// The checks of the object registry for agents that have left without notice. The test controls the clock.
@Suite(.exclusive) struct AgentCheckTests {
    private static let interval = Duration.seconds(60)
    private static let identityRequest = #"{"coreTypes":["Identity"]}"#

    private let clock = SteeredClock()

    private static func object(_ id: String, _ coreType: String) -> String {
        #"{"object":{"coreType":"\#(coreType)","objectType":"t","objectId":"\#(id)","name":"n"}}"#
    }

    /// A registry, the manager that it uses, and a function that publishes for other agents.
    private struct Network: Sendable {
        let registry: ObjectRegistry
        let manager: CommunicationManager
        let publish: @Sendable (_ topic: String, _ payload: String) throws -> Void

        func advertise(_ id: String, _ coreType: String = "CoatyObject", by agent: String) throws {
            try publish("ADV:\(coreType)/\(agent)", AgentCheckTests.object(id, coreType))
        }

        /// Advertises the identity of an agent, and an object.
        func join(_ agent: String) async throws {
            try advertise(agent, "Identity", by: agent)
            try advertise("of " + agent, by: agent)
            try await untilTrue("\(agent) is listed") { contains("of " + agent) }
        }

        func contains(_ id: String) -> Bool { registry.object(CoatyUUID(wire: id)) != nil }

        var online: Set<String> {
            Set(
                registry.content.agents.filter(\.isOnline).compactMap { agent in
                    (try? Payload(agent.identity))?.json["objectId"]?.string
                }
            ).subtracting([manager.identityId.string])
        }
    }

    private func withNetwork(
        _ options: CommunicationOptions,
        publish: @escaping @Sendable (String, String) throws -> Void,
        _ body: (Network) async throws -> Void
    ) async throws {
        let manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        let registry = ObjectRegistry(
            manager: manager,
            checkInterval: Self.interval,
            clock: clock,
            logger: .init(label: "test")
        )
        let network = Network(registry: registry, manager: manager) { topic, payload in
            try publish("coaty/3/-/" + topic, payload)
        }
        registry.start()
        manager.start()
        try await untilTrue("its own identity is known") { network.contains(manager.identityId.string) }
        try await untilAsleep(for: Self.interval)
        try await body(network)
        await manager.stop()
        registry.stop()
    }

    private func withTopicBroker(_ body: (TopicBroker, Network) async throws -> Void) async throws {
        let broker = TopicBroker()
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        try await withNetwork(options) { [broker] topic, payload in
            broker.publish(topic: topic, payload: Array(payload.utf8))
        } _: { network in
            try await body(broker, network)
        }
    }

    private func untilAsleep(for duration: Duration) async throws {
        try await untilTrue("the registry sleeps for \(duration)") {
            clock.deadlines == [SteeredClock().now.duration(to: clock.now) + duration]
        }
    }

    /// Lets the interval pass, and returns when the gateway's own agent has answered the request of the check.
    private func beginCheck() async throws {
        clock.advance(by: Self.interval)
        try await untilAsleep(for: ObjectRegistry.confirmationTime)
    }

    /// Lets the time for answers pass, and returns when the check has ended.
    private func endCheck() async throws {
        clock.advance(by: ObjectRegistry.confirmationTime)
        try await untilAsleep(for: Self.interval)
    }

    private static func requests(_ broker: TopicBroker) -> [TopicBroker.Message] {
        broker.published.filter { $0.topic.contains("/DSC/") }
    }

    @Test func silentAgentIsRemoved() async throws {
        try await withTopicBroker { broker, network in
            for agent in ["silent", "answering", "publishing before", "publishing after"] {
                try await network.join(agent)
            }
            try network.advertise("without identity", by: "unknown")
            try await untilTrue("it is listed") { network.contains("without identity") }
            // Agents that were heard since the last check are not suspected, so nobody is asked.
            clock.advance(by: Self.interval)
            try await untilAsleep(for: Self.interval)
            #expect(Self.requests(broker).count == 1)

            try network.advertise("new", by: "publishing before")
            try await untilTrue("it is heard") { network.contains("new") }
            try await beginCheck()
            let request = try #require(Self.requests(broker).last)
            #expect(Self.requests(broker).count == 2)
            #expect(String(decoding: request.payload, as: UTF8.self) == Self.identityRequest)
            let correlationId = try #require(request.topic.split(separator: "/").last)
            try network.publish("RSV/answering/\(correlationId)", Self.object("answering", "Identity"))
            try network.publish("DSC/publishing after/1", #"{"coreTypes":["User"]}"#)
            try network.advertise("last", by: "another")
            try await untilTrue("all are heard") { network.contains("last") }
            #expect(network.online.contains("silent"))
            try await endCheck()
            #expect(network.online == ["answering", "publishing before", "publishing after"])
            #expect(!network.contains("of silent") && network.contains("of answering"))
            #expect(network.contains("without identity"), "only agents are asked")

            // It was only slow: its objects are listed again, and the registry asks for those that it has missed.
            try network.advertise("silent", "Identity", by: "silent")
            try await untilTrue("it is listed again") { network.contains("of silent") }
            try await untilTrue("its objects are requested") {
                Self.requests(broker).last.map { String(decoding: $0.payload, as: UTF8.self).contains("Snapshot") }
                    ?? false
            }
        }
    }

    @Test func agentsStayIfTheConnectionIsLostDuringACheck() async throws {
        try await withTopicBroker { broker, network in
            try await network.join("silent")
            clock.advance(by: Self.interval)
            try await untilAsleep(for: Self.interval)
            try await beginCheck()
            clock.advance(by: ObjectRegistry.confirmationTime - .milliseconds(1))
            broker.setAvailable(false)
            try await untilTrue("the connection is lost") { !network.manager.isOnline }
            broker.setAvailable(true)
            // The reconnect gives it time again.
            try await untilAsleep(for: ObjectRegistry.confirmationTime)
            clock.advance(by: .milliseconds(1))
            #expect(network.online == ["silent"])
            clock.advance(by: ObjectRegistry.confirmationTime)
            try await untilTrue("it is removed") { network.online == [] }
        }
    }

    @Test func agentsStayIfAnswersMayBeMissing() async throws {
        try await withTopicBroker { broker, network in
            try await network.join("silent")
            clock.advance(by: Self.interval)
            try await untilAsleep(for: Self.interval)
            try await beginCheck()
            let asked = Self.requests(broker).count
            broker.reportGap()
            try await untilTrue("the gap is known") { Self.requests(broker).count > asked }
            try await endCheck()
            #expect(network.online == ["silent"])
            try await beginCheck()
            try await endCheck()
            #expect(network.online == [])
        }
    }

    /// Without the gateway's own answer, a frozen broker would look like a network without agents.
    @Test(arguments: [true, false])
    func agentsStayWhileTheBrokerIsFrozen(isFrozenBefore: Bool) async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let pid = try #require(broker.pid)
        let client = try MQTTTestClient(port: broker.port)
        let living = try CommunicationManager(
            identity: Identity(name: "living"),
            options: CommunicationOptions(mqttClientOptions: MQTTClientOptions(host: "127.0.0.1", port: broker.port))
        )
        let options = MQTTClientOptions(host: "127.0.0.1", port: broker.port)
        try await withNetwork(CommunicationOptions(mqttClientOptions: options)) { topic, payload in
            try client.publish(topic, payload)
        } _: { network in
            living.start()
            let id = living.identityId.string
            try await untilTrue("the living agent is listed") { network.contains(id) }
            try await network.join("dead")
            clock.advance(by: Self.interval)
            try await untilAsleep(for: Self.interval)
            if !isFrozenBefore { try await beginCheck() }
            kill(pid, SIGSTOP)
            defer { kill(pid, SIGCONT) }
            clock.advance(by: isFrozenBefore ? Self.interval : ObjectRegistry.confirmationTime)
            try await untilAsleep(for: ObjectRegistry.ownAnswerTime)
            clock.advance(by: ObjectRegistry.ownAnswerTime)
            try await untilAsleep(for: Self.interval)
            #expect(network.online == ["dead", id])
            kill(pid, SIGCONT)
            try await untilTrue("the broker answers") {
                network.manager.isConnected && (try? client.subscribe("x")) != nil
            }
            try await beginCheck()
            try await endCheck()
            #expect(network.online == [id])
            await living.stop()
        }
    }
}
