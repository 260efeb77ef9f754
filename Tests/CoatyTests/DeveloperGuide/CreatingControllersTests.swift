import Coaty
import TestSupport
import Testing

@testable import CoatyTestSupport

/// The examples of the chapter "Creating controllers".
@Suite(.exclusive) struct CreatingControllersTests {
    @Test @ControllerActor func callsTheLifecycleMethodsInOrder() async throws {
        let network = try GuideNetwork()
        let container = try network.agent(["ExampleController": ExampleController.self, "Other": OtherController.self])
        let controller: ExampleController = try #require(container.getController(name: "ExampleController"))
        #expect(controller.calls.values == ["onInit"])
        #expect(controller.seesOther, "all controllers exist when the first is initialized")

        try await network.join(container)
        #expect(controller.calls.values == ["onInit", "starting"])
        await container.communicationManager.stop()
        #expect(controller.calls.values == ["onInit", "starting", "stopping"])
        container.communicationManager.start()
        _ = try await controller.calls.wait(for: 4)
        await network.end(container)
        #expect(controller.calls.values == ["onInit", "starting", "stopping", "starting", "stopping", "dispose"])
    }

    @Test @ControllerActor func takesAControllerWhileTheAgentRuns() async throws {
        let network = try GuideNetwork()
        let container = try network.agent(["Other": OtherController.self])
        try await network.join(container)
        try container.registerController(name: "Late", controllerType: ExampleController.self)
        let controller: ExampleController = try #require(container.getController(name: "Late"))
        #expect(controller.calls.values == ["onInit", "starting"])
        #expect(throws: ConfigurationError.duplicateController("Late")) {
            try container.registerController(name: "Late", controllerType: ExampleController.self)
        }
        await network.end(container)
    }
}

private final class ExampleController: Controller {
    let calls = Recorder<String>()
    private(set) var seesOther = false

    // MARK: - Controller lifecycle methods.

    override func onInit() {
        // Perform initial setup.
        // Access the container by `self.container`.
        // Access other controllers by `self.container.getController(name:)`
        let other: OtherController? = container.getController(name: "Other")
        seesOther = other != nil
        calls.append("onInit")
    }

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        // Set up your observations or start publishing events.
        calls.append("starting")
    }

    override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        // Perform side effects when the communication manager is stopped.
        calls.append("stopping")
    }

    override func onDispose() {
        // Tear down resources when the container is disposed of.
        calls.append("dispose")
    }
}

private final class OtherController: Controller {}
