import Base
import Coaty
import Coordination
import Logging
import Network

/// The gateway as an agent in the Coaty network, with a router for each context that it hosts.
struct GatewayAgent: Component {
    /// Maximum time that the start waits for the broker; after that, the gateway serves clients but is not ready.
    static let patience = Duration.seconds(5)
    /// Maximum time for the routers to stop.
    static let routingStopTimeout = Duration.milliseconds(500)

    let routing: RoutingAdmin
    private let container: Container
    /// Kept as long as the agent exists.
    private let lock: StateLock?

    var communicationManager: CommunicationManager { container.communicationManager }

    /// Creates the agent; it joins when it is started.
    ///
    /// - Parameter isInCluster: whether the routers are silent until ``RoutingCluster`` lets them speak.
    /// - Throws: an error if the settings are not valid.
    @ControllerActor
    init(
        settings: GatewaySettings,
        communication: CommunicationOptions,
        isInCluster: Bool = false,
        logger: Logger
    ) async throws {
        let routingLogger = logger.labelled(.routing)
        let directory = settings.routing.contexts.isEmpty ? nil : settings.stateDirectory
        lock = try directory.map(StateLock.init)
        let store = try directory.map { directory in
            try RoutingStore(
                directory: directory,
                configuration: settings.routing,
                writer: GatewayVersion.text,
                logger: routingLogger
            )
        }
        let contexts = try await store?.load() ?? settings.routing.contexts
        // The state of the demo's context need not be kept.
        if store == nil, contexts.contains(where: { $0.objectId != DemoContext.objectId }) {
            routingLogger.warning(
                "without a state-directory, contexts and rules changed over REST are forgotten at a restart"
            )
        }
        container = try Container.resolve(
            components: Components(controllers: [:]),
            configuration: Configuration(
                common: CommonOptions(agentIdentity: ["name": .string(settings.name)], logLevel: logger.logLevel),
                communication: communication
            ),
            logger: logger.labelled(.broker),
            controllerLogger: routingLogger
        )
        let feed = RoutingFeed()
        var routers: [(id: CoatyUUID, name: WireName, router: HostedRouter)] = []
        for (context, configured) in zip(contexts, settings.routing.contexts) {
            let name = "router of \(context.objectId)"
            try container.registerController(
                name: name,
                controllerType: HostedRouter.self,
                controllerOptions: ControllerOptions(extra: ["ioContext": try context.object, "rules": context.rules])
            )
            guard let router: HostedRouter = container.getController(name: name) else { continue }
            router.settle(in: .init(feed: feed, store: store, configured: configured))
            router.version = context.version
            if isInCluster { router.startSilent() }
            routers.append((context.objectId, WireName(context.name), router))
        }
        routing = RoutingAdmin(
            manager: container.communicationManager,
            routers: routers,
            feed: feed,
            limits: settings.limits
        )
    }

    func start() async {
        await routing.start()
        communicationManager.start()
        await withTaskGroup { group in
            group.addTask {
                for await state in communicationManager.getCommunicationState() where state == .online { return }
            }
            group.addTask { try? await Task.sleep(for: Self.patience) }
            await group.next()
            group.cancelAll()
        }
    }

    func stop() async {
        // Busy routers must not prevent the agent from leaving the network.
        _ = await completes(within: Self.routingStopTimeout) { [routing] in await routing.stop() }
        await container.shutdown()
    }
}
