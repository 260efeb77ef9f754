import Coaty
import TestSupport
import Testing

/// The examples of the chapter "Testing with the in-memory broker".
@Suite(.exclusive, .timeLimit(.minutes(1))) struct InMemoryTests {
    private func agent(on broker: InMemoryBroker) async throws -> Container {
        let communication = CommunicationOptions(shouldAutoStart: true) { _ in InMemoryBinding(broker: broker) }
        let container = try await Container.resolve(configuration: Configuration(communication: communication))
        for await state in container.communicationManager.getCommunicationState() where state == .online { break }
        return container
    }

    @Test func greets() async throws {
        let broker = InMemoryBroker()
        let greeter = try await agent(on: broker)
        try greeter.communicationManager.answer("com.example.greet") { (name: [String]) in "Hello, \(name[0])" }
        let caller = try await agent(on: broker)
        let greeting: String = try await caller.communicationManager.call(
            "com.example.greet",
            ["Ann"],
            timeout: .seconds(10)
        )
        #expect(greeting == "Hello, Ann")
        await greeter.shutdown()
        await caller.shutdown()
    }

    @Test func losesTheConnection() async throws {
        let broker = InMemoryBroker()
        let container = try await agent(on: broker)
        let manager = container.communicationManager

        broker.setAvailable(false)
        for await state in manager.getCommunicationState() where state == .offline { break }
        let delivery = try manager.publishDeadvertise(.with(objectIds: .init()))
        #expect(delivery == .deferred)
        #expect(manager.queued.publications == 1)
        let offline = await #expect(throws: CallError.self) {
            let _: String = try await manager.call("com.example.greet", ["Ann"], timeout: .seconds(10))
        }
        guard case .notSent(CommunicationError.offline) = offline else {
            Issue.record("\(String(describing: offline))")
            return
        }
        broker.setAvailable(true)
        while !broker.published.contains(where: { Self.eventType(of: $0) == .deadvertise }) { await Task.yield() }

        let advertised = broker.published.filter { publication in
            if case .event(let address) = publication.destination { address.eventType == .advertise } else { false }
        }
        #expect(advertised.count == 2, "the identity, once for each connection")
        await container.shutdown()
    }

    private static func eventType(of publication: Publication) -> CommunicationEventType? {
        if case .event(let address) = publication.destination { address.eventType } else { nil }
    }
}
