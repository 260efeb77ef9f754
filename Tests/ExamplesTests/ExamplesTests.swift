import Foundation
import TestSupport
import Testing

/// The agents of the examples, each in a separate process, with mosquitto.
@Suite(.exclusive) struct ExamplesTests {
    @Test func helloWorldClientsShareTheTasks() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let clients = try (0..<2).map { _ in try ExampleProcess("hello-world-client", broker: broker) }
        let service = try ExampleProcess("hello-world-service", broker: broker)

        // Both clients offer to do each task: one offer is accepted, the other is rejected because it came too late.
        try waitUntil("tasks are done") { service.lines.filter { $0.hasPrefix("done: ") }.count >= 3 }
        try waitUntil("an offer is rejected") { clients.contains { $0.lines.contains { $0.hasPrefix("rejected: ") } } }

        let accepted = clients.flatMap(\.lines).filter { $0.hasPrefix("accepted: ") }
        #expect(Set(accepted).count == accepted.count, "no task is assigned twice")
        for done in service.lines where done.hasPrefix("done: ") {
            #expect(accepted.contains(done.replacing("done", with: "accepted")))
        }
        #expect(try service.stop() == 0)
        for client in clients { #expect(try client.stop() == 0) }
    }

    @Test func lightsOfTheFloorAreSwitched() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let lights = try [["1", "1", "1"], ["1", "1", "2", "defect"], ["1", "2", "1"]].map {
            try ExampleProcess("remote-operations-light", $0, broker: broker)
        }
        try untilObserved(lights, broker: broker)

        func control(_ arguments: String...) throws -> [String] {
            try ExampleProcess("remote-operations-control", arguments, broker: broker).waitForEnd().map(String.init)
                .sorted()
        }
        #expect(try control("on", "1") == ["error 1: Light is defect", "result: true"])
        #expect(try control("off", "2") == ["result: false"])
        #expect(try control("on", "2", "256", "0", "0") == ["error -32602: Invalid params"])
        #expect(try control("on", "3") == [])
        #expect(lights[0].lines.contains { $0.hasPrefix("on, color [255.0") })
        #expect(!lights[2].lines.contains { $0.hasPrefix("on") })
        for light in lights { #expect(try light.stop() == 0) }
    }

    /// Waits until the subscriptions of the lights are active: each light answers a Discover event for identities after
    /// it has subscribed.
    private func untilObserved(_ lights: [ExampleProcess], broker: BrokerProcess) throws {
        try waitUntil("the lights are there") { lights.allSatisfy { !$0.lines.isEmpty } }
        let asker = try MQTTTestClient(port: broker.port)
        try asker.subscribe("coaty/3/com.remoteops/RSV/#")
        try waitUntil("the lights answer") {
            try asker.publish(
                "coaty/3/com.remoteops/DSC/5f0c2c1e-0000-4000-8000-000000000000/5f0c2c1e-0000-4000-8000-000000000001",
                #"{"coreTypes":["Identity"]}"#
            )
            let answered = asker.messages.compactMap { $0.topic.split(separator: "/").dropFirst(4).first }
            return Set(answered).count == lights.count
        }
    }
}
