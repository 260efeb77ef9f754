import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Shutdown of a container.
@ControllerActor @Suite(.timeLimit(.minutes(1))) struct ContainerTests {
    @Test func controllersWaitTogetherBeforeTheAgentLeaves() async throws {
        let names = ["a", "b", "c"]
        let container = try Container.resolve(
            components: Components(
                controllers: [
                    "a": LingeringController.self, "b": LingeringController.self, "c": LingeringController.self,
                ]
            ),
            configuration: Configuration(
                communication: CommunicationOptions { _ in InMemoryBinding(broker: InMemoryBroker()) }
            )
        )
        let arrived = Recorder<Bool>()
        let controllers: [LingeringController] = names.compactMap { container.getController(name: $0) }
        try #require(controllers.count == names.count)
        for controller in controllers { (controller.arrived, controller.expected) = (arrived, names.count) }
        container.communicationManager.start()
        await container.shutdown()
        #expect(controllers.map(\.hasMetAll) == [true, true, true])
    }
}

/// A controller that does not finish its shutdown before all controllers have begun theirs.
private final class LingeringController: Controller {
    var arrived = Recorder<Bool>()
    var expected = 1
    private(set) var hasMetAll = false

    override func beforeLeaving() async {
        arrived.append(true)
        hasMetAll = await (try? arrived.wait(for: expected)) != nil
    }
}
