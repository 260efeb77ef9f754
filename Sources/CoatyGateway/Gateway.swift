import Coaty
import CoatyMQTT
import Coordination
import HTTPServer
public import Logging
import Synchronization
import WebSocketServer

/// The gateway: a tree of coordinators for the broker, the gateway's session, IO nodes, WebSocket, REST and the port.
///
/// They start in this order and stop in reverse order, so that pending work can complete before its dependencies stop.
public final class Gateway: Sendable {
    /// The version, as in openapi.yaml.
    public static let version = "0.1.0"

    private let settings: GatewaySettings
    private let created = CoatyTimestamp.nowMillis()
    private let logger: Logger
    private let root: Coordinator<GatewayRoot>

    /// Creates a gateway without starting it.
    public init(settings: GatewaySettings, logger: Logger) {
        self.settings = settings
        self.logger = logger
        root = Coordinator(name: "gateway", component: GatewayRoot())
    }

    /// Starts all components and serves clients.
    ///
    /// - Returns: the URL at which the gateway listens, and the broker's address, without credentials.
    /// - Throws: the error of the first component that can't start; all others are stopped.
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

    /// Stops all components in order: refuses new work, completes pending work, closes WebSockets, leaves the network.
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
        let trafficSessions = TrafficSessions()
        try await root.start(Coordinator(name: "traffic sessions", component: trafficSessions))
        let objects = ObjectRegistry(manager: manager, logger: logger)
        try await root.start(Coordinator(name: "objects", component: objects))
        try await root.start(Coordinator(name: "broker session", component: agent))

        let ioNodes = ioNodeRegistry(broker)
        try await root.start(Coordinator(name: "IO nodes", component: ioNodes))

        let identities = ClientIdentities(
            options: clientOptions(broker),
            limit: settings.maximumIdentities,
            logger: logger
        )
        try await root.start(Coordinator(name: "client identities", component: identities))

        let brokerSessions = settings.maximumIoNodes + settings.maximumIdentities + TrafficSessions.maximum
        let limit = DescriptorLimit(agents: brokerSessions)
        let hub = FeedHub(
            manager: manager,
            ioNodes: ioNodes,
            routing: routing,
            objects: objects,
            resumeWindow: settings.resumeWindow,
            resumeMemory: settings.resumeMemory,
            sessions: trafficSessions
        )
        let services = SocketServices(
            hub: hub,
            agents: identities,
            browserPolicy: settings.browserPolicy,
            maximumTimeout: settings.maximumTimeout
        )
        let streams = WebSocketServer(
            configuration: streamConfiguration(limit),
            handler: WebSocketEndpoint(services: services),
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

    /// Returns the configured broker, which may have to be discovered; starts an embedded one if none is configured.
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

    /// Returns the registry of IO nodes, whose agents join the gateway's namespace at the gateway's broker.
    func ioNodeRegistry(_ broker: MQTTClientOptions) -> IoNodeRegistry {
        IoNodeRegistry(
            options: clientOptions(broker),
            name: settings.name,
            limit: settings.maximumIoNodes,
            logger: logger
        )
    }

    /// Returns the communication options for the agents of clients.
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
        _ hub: FeedHub
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
            started: created
        ).register(in: &router)
        ContractResource().register(in: &router)
        let console = ConsoleResource()
        console.register(in: &router)
        ObjectsResource(registry: objects).register(in: &router)
        AgentsResource(registry: objects).register(in: &router)
        EventStreamResource(hub: hub, heartbeat: Heartbeat()).register(in: &router)
        WebSocketEndpoint.registerPlain(in: &router)
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
        configuration.subprotocols = [WebSocketEndpoint.subprotocol]
        configuration.allowsCompression = settings.isWebSocketCompressed
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }
}
