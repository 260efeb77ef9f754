import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive) struct ConnectionStateControllerTests {
    @Test func reportsWhetherTheAgentIsOffline() async throws {
        let broker = InMemoryBroker()
        broker.setAvailable(false)
        let container = try Container.resolve(
            components: Components(controllers: ["State": ConnectionStateController.self]),
            configuration: Configuration(
                communication: CommunicationOptions(shouldAutoStart: true) { _ in InMemoryBinding(broker: broker) }
            )
        )
        let controller: ConnectionStateController = try #require(container.getController(name: "State"))
        let states = controller.isOffline
        let seen = Recorder<Bool>()
        let reading = Task { for await isOffline in states { seen.append(isOffline) } }
        #expect(try await seen.wait(for: 1) == [true])
        broker.setAvailable(true)
        #expect(try await seen.wait(for: 2) == [true, false])
        broker.setAvailable(false)
        #expect(try await seen.wait(for: 3) == [true, false, true])
        reading.cancel()
        await container.shutdown()
    }
}
