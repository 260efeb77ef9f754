import Coaty
import CoatyMQTT
import Coordination
import HTTPServer
public import Logging
import Synchronization
import WebSocketServer

/// The gateway: a tree of coordinators for the broker, the link to it, IO nodes, streams, REST and the port.
///
/// They start in this order and stop in the reverse one, so that what is under way can end before what it needs goes.
public final class Gateway: Sendable {
    /// The version, as in openapi.yaml.
    public static let version = "0.1.0"

    private let settings: GatewaySettings
    private let made = CoatyTimestamp.nowMillis()
    private let logger: Logger
    private let root: Coordinator<GatewayRoot>

    /// Creates a gateway that does nothing yet.
    public init(settings: GatewaySettings, logger: Logger) {
        self.settings = settings
        self.logger = logger
        root = Coordinator(name: "gateway", component: GatewayRoot())
    }

    /// Starts everything and serves.
    ///
    /// - Returns: where the gateway listens, and its broker, without credentials.
    /// - Throws: what prevents it; then nothing is left running.
    public func start() async throws -> (url: String, broker: String) {
        root.observe { [logger] change in
            logger.debug("\(change.coordinator.name): \(change.to)")
        }
        try await root.start()
        do {
            return try await startChildren()
        } catch {
            await root.stop()
            throw error
        }
    }

    /// Stops everything in order: no new work, what is under way ends, WebSockets close, the network is left.
    public func stop() async {
        await root.stop()
    }

    private func startChildren() async throws -> (url: String, broker: String) {
        let broker = try await brokerOptions()
        let communication = CommunicationOptions(
            namespace: settings.namespace,
            outboxLimits: settings.outboxLimits,
            mqttClientOptions: broker
        )
        let agent = try await GatewayAgent(settings: settings, communication: communication, logger: logger)
        let (manager, routing) = (agent.communicationManager, agent.routing)
        let trafficLinks = TrafficLinks()
        try await root.start(Coordinator(name: "traffic links", component: trafficLinks))
        let objects = ObjectRegistry(manager: manager, logger: logger)
        try await root.start(Coordinator(name: "objects", component: objects))
        try await root.start(Coordinator(name: "broker link", component: agent))

        let ioNodes = ioNodeRegistry(broker)
        try await root.start(Coordinator(name: "IO nodes", component: ioNodes))

        let agents = VirtualAgents(
            options: clientOptions(broker),
            limit: settings.maximumVirtualAgents,
            logger: logger
        )
        try await root.start(Coordinator(name: "virtual agents", component: agents))

        let agentsAndLinks = settings.maximumIoNodes + settings.maximumVirtualAgents + TrafficLinks.maximum
        let limit = DescriptorLimit(agents: agentsAndLinks)
        let hub = StreamHub(
            manager: manager,
            ioNodes: ioNodes,
            routing: routing,
            objects: objects,
            resumeWindow: settings.resumeWindow,
            resumeMemory: settings.resumeMemory,
            links: trafficLinks
        )
        let services = SocketServices(
            hub: hub,
            agents: agents,
            browserPolicy: settings.browserPolicy,
            maximumTimeout: settings.maximumTimeout
        )
        let streams = WebSocketServer(
            configuration: streamConfiguration(limit),
            handler: StreamEndpoint(services: services),
            logger: logger
        )
        try await root.start(Coordinator(name: "streams", component: StreamService(server: streams)))

        let rest = HTTPServer(
            configuration: restConfiguration(limit),
            router: router(manager, broker, ioNodes, routing, objects, hub),
            logger: logger
        )
        try await root.start(Coordinator(name: "REST", component: RESTService(server: rest)))

        let listener = PortListener(
            host: settings.host,
            port: settings.port,
            maximumUndecided: limit.undecided,
            serveHTTP: rest.adopt,
            serveWebSocket: streams.adopt,
            logger: logger
        )
        try await root.start(Coordinator(name: "listener", component: listener))
        let host = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
        return ("http://\(host):\(listener.port ?? settings.port)", broker.address)
    }

    /// The broker that was configured or is to be discovered, or else one that is started here.
    private func brokerOptions() async throws -> MQTTClientOptions {
        if let broker = settings.broker { return broker }
        var configuration = EmbeddedBroker.Configuration()
        configuration.listen = settings.embeddedBrokerListen
        let broker = EmbeddedBroker(configuration: configuration, logger: logger)
        try await root.start(Coordinator(name: "embedded broker", component: broker))
        let address = broker.address ?? configuration.listen
        if settings.isEmbeddedBrokerAnnounced {
            let announcement = try MDNSAnnouncement(host: configuration.listen.host, port: address.port, logger: logger)
            let component = BrokerAnnouncement(announcement: announcement)
            try await root.start(Coordinator(name: "broker announcement", component: component))
        }
        return MQTTClientOptions(host: address.host, port: address.port)
    }

    /// The agents of IO nodes are in the gateway's namespace, at its broker.
    func ioNodeRegistry(_ broker: MQTTClientOptions) -> IoNodeRegistry {
        IoNodeRegistry(
            options: clientOptions(broker),
            name: settings.name,
            limit: settings.maximumIoNodes,
            logger: logger
        )
    }

    /// How an agent of a client's takes part.
    private func clientOptions(_ broker: MQTTClientOptions) -> CommunicationOptions {
        let limits = OutboxLimits(
            publications: min(settings.outboxLimits.publications, IoNodeRegistry.maximumWaiting),
            bytes: min(settings.outboxLimits.bytes, IoNodeRegistry.waitingBodies * settings.maximumBodySize)
        )
        return CommunicationOptions(namespace: settings.namespace, outboxLimits: limits, mqttClientOptions: broker)
    }

    func router(
        _ manager: CommunicationManager,
        _ broker: MQTTClientOptions,
        _ ioNodes: IoNodeRegistry,
        _ routing: RoutingAdmin,
        _ objects: ObjectRegistry,
        _ hub: StreamHub
    ) -> Router {
        var router = Router()
        PublishResource(manager: manager).register(in: &router)
        RawResource(manager: manager).register(in: &router)
        BatchResource(manager: manager).register(in: &router)
        TwoWayResource(hub: hub, maximumTimeout: settings.maximumTimeout).register(in: &router)
        IoNodesResource(registry: ioNodes, manager: manager).register(in: &router)
        IoValuesResource(registry: ioNodes).register(in: &router)
        ContextsResource(admin: routing, maximumTimeout: settings.maximumTimeout).register(in: &router)
        RulesResource(admin: routing).register(in: &router)
        HealthResource(manager: manager).register(in: &router)
        InfoResource(manager: manager, brokerAddress: broker.address, isBrokerEmbedded: settings.broker == nil)
            .register(in: &router)
        StatusResource(
            hub: hub,
            brokerAddress: broker.address,
            isBrokerEmbedded: settings.broker == nil,
            started: made
        ).register(in: &router)
        ContractResource().register(in: &router)
        let console = ConsoleResource()
        console.register(in: &router)
        ObjectsResource(registry: objects).register(in: &router)
        AgentsResource(registry: objects).register(in: &router)
        EventStreamResource(hub: hub, heart: StreamHeart()).register(in: &router)
        StreamEndpoint.registerPlain(in: &router)
        router.admission = { [policy = settings.browserPolicy, publicPaths = console.publicPaths] head in
            policy.admit(head, publicPaths: publicPaths)
        }
        return router
    }

    private func restConfiguration(_ limit: DescriptorLimit) -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration()
        configuration.maximumBodySize = settings.maximumBodySize
        configuration.connectionLimit = limit.connections
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }

    private func streamConfiguration(_ limit: DescriptorLimit) -> WebSocketServer.Configuration {
        var configuration = WebSocketServer.Configuration()
        configuration.maximumConnections = limit.connections
        configuration.maximumMessageSize = settings.maximumBodySize
        configuration.subprotocols = [StreamEndpoint.subprotocol]
        configuration.allowsCompression = settings.isWebSocketCompressed
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }
}
