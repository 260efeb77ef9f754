import Coaty
import CoatyMQTT
import TestSupport
import Testing

@testable import CoatyTestSupport

/// The examples of the chapter "Bootstrapping a Coaty container".
@Suite(.exclusive) struct BootstrappingTests {
    @Test @ControllerActor func resolvesAContainerThatJoinsAtOnce() async throws {
        let network = try GuideNetwork()

        // Here, you specify which Coaty controllers and object types you want to use in your application. You choose
        // the names, and use them to access the controllers later.
        let components = Components(
            controllers: ["ExampleController": ExampleController.self],
            objectTypes: [CustomObjectTypesTests.ExampleObject.self]
        )

        guard let configuration = createExampleConfiguration(brokerPort: network.broker.port) else {
            Issue.record("Invalid configuration! Please check your options.")
            return
        }

        // Pass in the previously defined components and configuration.
        // Then, call Container.resolve(...), save it into our global variable, and you're done!
        coatyContainer = try Container.resolve(components: components, configuration: configuration)

        let container = try #require(coatyContainer)
        let controller: ExampleController = try #require(container.getController(name: "ExampleController"))
        let seen = try await controller.identities.wait(for: 1)
        #expect(seen == ["Example Agent"])
        #expect(container.identity.name == "Example Agent")
        #expect(container.configuration.common?.extra["ContainerVersion"] as? String == "0.0.1")
        #expect(container.logger.logLevel == .info)
        #expect(container.communicationManager.namespace == "com.example")
        #expect(controller.options.extra["greeting"] as? String == "Hello")
        coatyContainer = nil
        await network.end(container)
    }

    @Test @ControllerActor func refusesAConfigurationWithoutCommunicationOptions() {
        #expect(throws: ConfigurationError.noCommunication) {
            try Configuration.build { $0.common = CommonOptions() }
        }
    }

    /// This method creates an exemplary Coaty configuration. You can use it as a basis for your application.
    private func createExampleConfiguration(brokerPort: UInt16) -> sending Configuration? {
        try? .build { config in

            // This part defines common options shared by all container components,
            // including e.g. an associated user or associated device.
            config.common = CommonOptions()

            // Adjusts the logging level of Coaty messages, which is especially
            // helpful if you want to test or debug applications (default is .error).
            config.common?.logLevel = .info

            // Configure an expressive `name` of the container's identity here.
            config.common?.agentIdentity = ["name": "Example Agent"]

            // You can also add extra information to your configuration.
            config.common?.extra = ["ContainerVersion": "0.0.1"]

            // Define communication-related options, such as the host address of your broker
            // (default is "localhost") and the port it exposes (default is 1883). Define a
            // unique communication namespace for your application and make sure to immediately
            // connect with the broker, indicated by `shouldAutoStart: true`.
            let mqttClientOptions = MQTTClientOptions(host: "127.0.0.1", port: brokerPort)
            config.communication = CommunicationOptions(
                namespace: "com.example",
                mqttClientOptions: mqttClientOptions,
                shouldAutoStart: true
            )

            // The options of a controller are assigned by its name in the components.
            config.controllers = ControllerConfig(
                controllerOptions: ["ExampleController": ControllerOptions(extra: ["greeting": "Hello"])]
            )
        }
    }
}

/// Save a reference of your container to make sure it stays alive during the entire lifetime of the app.
@ControllerActor private var coatyContainer: Container?

/// A controller that records the names of observed agents.
private final class ExampleController: Controller {
    let identities = Recorder<String>()

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let events = communicationManager.observeAdvertise(withCoreType: .Identity)
        Task {
            for await event in events { identities.append(try event.data.object.name) }
        }
        .disposed(by: disposeBag)
    }
}
