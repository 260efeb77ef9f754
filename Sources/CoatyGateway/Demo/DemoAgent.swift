import Coaty
import Coordination
import Logging

/// The agent of `--demo true`, which provides example objects in a network without agents.
///
/// It is a normal agent with its own broker session and identity. Its name, the names of its objects, and the object
/// types, which begin with `com.example.demo.`, mark it as a demo.
struct DemoAgent: Component {
    static let name = "Demo agent (coaty-gateway --demo)"

    private let container: Container

    /// Creates the agent; it joins when it is started.
    @ControllerActor
    init(communication: CommunicationOptions, logger: Logger) throws {
        var logger = logger
        // Its session has the same log messages as the gateway's session.
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

    /// Starts to join. Does not wait for the broker.
    func start() async { container.communicationManager.start() }

    func stop() async { await container.shutdown() }
}
