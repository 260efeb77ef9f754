import Coaty
import Coordination
import Logging

/// The agent of `--demo true`: something to look at in a network without agents.
///
/// It is an agent like any other, with its own broker session and identity. Its name says that it is a demo, and so do the
/// names of its objects and the object types, which begin with `com.example.demo.`.
struct DemoAgent: Component {
    static let name = "Demo agent (coaty-gateway --demo)"

    private let container: Container

    /// Puts the agent together; it joins when it is started.
    @ControllerActor
    init(communication: CommunicationOptions, logger: Logger) throws {
        var logger = logger
        // Its session logs what the gateway's session logs, too.
        logger[metadataKey: "agent"] = "demo"
        let points = DemoPoints()
        container = try Container.resolve(
            components: Components(controllers: [
                "sources": IoSourceController.self,
                "actors": IoActorController.self,
                "greenhouse": DemoGreenhouse.self,
            ]),
            configuration: Configuration(
                common: CommonOptions(
                    ioContextNodes: [DemoContext.name: points.node],
                    agentIdentity: ["name": .string(Self.name)],
                    logLevel: logger.logLevel
                ),
                communication: communication,
                controllers: ControllerConfig(controllerOptions: [
                    "greenhouse": ControllerOptions(extra: ["points": points])
                ])
            ),
            logger: logger
        )
    }

    /// Begins to join. Does not wait for the broker.
    func start() async { container.communicationManager.start() }

    func stop() async { await container.shutdown() }
}
