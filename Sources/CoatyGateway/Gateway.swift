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

    let settings: GatewaySettings
    private let created = CoatyTimestamp.nowMillis()
    let logger: Logger
    private let root: Coordinator<GatewayRoot>
    private let stopClock: StopClock
    private let heartbeat = Heartbeat()
    private let spread: ReconnectSpread
    private let mode: AccessMode
    private let access: AccessControl
    private let keyRefresher: KeyRefresher
    private let audit: AuditLog
    private let drain: Drain
    private let metrics = Metrics()
    private let readSettings: @Sendable () throws(ConfigurationError) -> GatewaySettings
    /// Nil until all components have started.
    private let reloader = Mutex<Reloader?>(nil)
    private let pause = PauseState()
    /// Nil if the port is without TLS.
    private let certificates: CertificateStore?
    private let requestLog: RequestLog

    /// Limits what the allocator keeps for itself. Call it at the start of the process.
    public static func prepareProcess() { ResidentMemory.prepareAllocator() }

    /// Creates a gateway without starting it.
    ///
    /// - Parameters:
    ///   - readSettings: reads the settings again for a reload; nil if they can't change.
    ///   - onFailure: called, on any thread, when a component that the gateway needs has ended for good. The gateway should be stopped
    ///     then.
    /// - Throws: if the audit log can't be opened, the files for TLS can't be used, or there are no keys or no certificates
    ///   in a file that `access.jwt` names.
    public init(
        settings: GatewaySettings,
        logger: Logger,
        readSettings: (@Sendable () throws(ConfigurationError) -> GatewaySettings)? = nil,
        onFailure: @escaping @Sendable () -> Void = {}
    ) throws {
        self.settings = settings
        self.logger = logger
        requestLog = RequestLog(settings.log, logger: logger)
        self.readSettings = readSettings ?? { () throws(ConfigurationError) -> GatewaySettings in settings }
        mode = try AccessMode(settings, generate: RandomSecret.token)
        let access = AccessControl(.open, browserPolicy: settings.browserPolicy)
        self.access = access
        keyRefresher = KeyRefresher(
            limits: settings.limits,
            current: { access.policy.verifier?.keys },
            onRevocation: { access.review() },
            logger: logger.labelled(.access)
        )
        let verifier = try mode.jwt.map(keyRefresher.verifier)
        access.replace(mode.policy(settings, verifier: verifier))
        audit = try AuditLog(settings.auditLog, limits: settings.limits, logger: logger.labelled(.access))
        stopClock = StopClock(timeout: settings.stopTimeout)
        spread = ReconnectSpread(seconds: settings.limits.reconnectSpread)
        drain = Drain(delay: .seconds(settings.limits.drainDelay))
        certificates = try settings.transport.tls.map { files in
            try CertificateStore(files, logger: logger.labelled(.tls))
        }
        let component = GatewayRoot { name in
            logger.critical("a component has ended for good: the gateway stops", metadata: ["component": "\(name)"])
            onFailure()
        }
        root = Coordinator(name: "gateway", component: component)
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

    /// The token that the gateway has made at start because none was configured; nil if it has not.
    public var generatedToken: String? {
        if case .token(let token, isGenerated: true) = mode { token } else { nil }
    }

    /// Reads the settings again and puts them in force: all that have changed, or none. Logs the result.
    ///
    /// Access, shares of clients, log level, rules, and the policy for web pages can change; another change needs a restart. The files for
    /// TLS are loaded and the audit log is opened again.
    ///
    /// - Returns: the names of the settings that have changed.
    /// - Throws: ``ConfigurationError``; nothing has changed then.
    @discardableResult
    public func reload() async throws(ConfigurationError) -> [String] {
        guard let reloader = reloader.withLock(\.self) else {
            throw ConfigurationError(description: "the gateway has not started")
        }
        return try await reloader.reload()
    }

    /// Stops all components in order: refuses new work, completes pending work, closes WebSockets, leaves the network. Takes less than the
    /// stop timeout: a component that does not stop in its share of the time is left behind.
    ///
    /// - Returns: whether all components have stopped.
    @discardableResult
    public func stop() async -> Bool {
        await root.stop()
        return stopClock.stopping.isEmpty
    }

    /// Names of the components that are stopping or do not stop.
    public var stoppingComponents: [String] { stopClock.stopping }

    /// Starts a component below the root.
    ///
    /// - Parameter stopLimit: maximum time for it to stop. All of them together must not be more than ``StopClock/limit``.
    @discardableResult
    private func start(
        _ name: String,
        _ component: some Component,
        stopLimit: Duration
    ) async throws -> AnyCoordinator {
        let bounded = BoundedStop(
            name: name,
            component: component,
            limit: stopLimit,
            clock: stopClock,
            logger: logger
        )
        stopClock.reserve(stopLimit)
        let coordinator = Coordinator(name: name, component: bounded)
        try await root.start(coordinator)
        return coordinator
    }

    private func startChildren() async throws -> (url: String, broker: String) {
        if case .open(let who?) = mode {
            logger.labelled(.access).warning("clients need no token", metadata: ["access": "\(who)"])
        }
        let trafficSessions = TrafficSessions(feeds: settings.limits[.brokerConnections].total)
        let brokerSessions =
            settings.limits[.ioNodes].total + settings.limits[.identities].total + trafficSessions.maximum
            + settings.limits.rawConnections
        let limit = try DescriptorLimit(
            agents: brokerSessions,
            isEncrypted: certificates != nil,
            undecided: settings.limits.undecidedConnections
        )
        var broker = try await brokerOptions()
        broker.maximumMessageSize = settings.limits.maximumEventSize
        broker.maximumPacketSize = broker.maximumMessageSize + MQTTClientOptions.maximumHeadSize
        var communication = CommunicationOptions(
            namespace: settings.namespace,
            outboxLimits: settings.outboxLimits,
            mqttClientOptions: broker
        )
        communication.maximumEventValues = settings.limits.eventValues
        let agent = try await GatewayAgent(settings: settings, communication: communication, logger: logger)
        let (manager, routing) = (agent.communicationManager, agent.routing)
        let rawSessions = RawSessions(maximum: settings.limits.rawConnections, open: manager.openRawSession)
        let observers = ComponentGroup(components: [trafficSessions, rawSessions])
        try await start("observing sessions", observers, stopLimit: .milliseconds(700))
        let workers = WorkerPool(name: "events", threads: settings.limits.eventWorkers)
        try await start("event workers", workers, stopLimit: .milliseconds(200))
        let objects = ObjectRegistry(manager: manager, limits: settings.limits, logger: logger.labelled(.feeds))
        try await start("objects", objects, stopLimit: .milliseconds(200))
        let queries = Queries(
            threads: settings.limits.queryWorkers,
            maximumSteps: settings.limits.querySteps,
            timeout: .milliseconds(settings.limits.queryTimeout)
        )
        try await start("queries", queries, stopLimit: .milliseconds(40))
        try await start("broker session", agent, stopLimit: .milliseconds(1500))

        let ioNodes = ioNodeRegistry(broker)
        let identities = ClientIdentities(
            options: clientOptions(broker),
            limit: settings.limits[.identities].total,
            logger: logger.labelled(.broker)
        )
        let agents = ComponentGroup(components: [ioNodes, identities])
        try await start("agents of clients", agents, stopLimit: .milliseconds(1100))

        let accounts = Accounts(limits(limit), logger: logger.labelled(.limits))
        let hub = FeedHub(
            manager: manager,
            ioNodes: ioNodes,
            routing: routing,
            objects: objects,
            resumeWindow: settings.resumeWindow,
            limits: settings.limits,
            sessions: trafficSessions,
            rawSessions: rawSessions,
            workers: workers,
            logger: logger.labelled(.feeds)
        )
        let memory = ResidentMemory(accounts, logger: logger.labelled(.limits)) { [streams = hub.streams] in
            streams.abortLargest(of: $0)
        }
        let watches = ComponentGroup(components: [memory, keyRefresher])
        try await start("resident memory and keys", watches, stopLimit: .milliseconds(100))
        let network = Network(
            manager: manager,
            feeds: hub,
            objects: objects,
            queries: queries,
            owners: ObjectOwners(),
            ioNodes: ioNodes,
            routing: routing,
            identities: identities,
            accounts: accounts,
            residentMemory: memory,
            requestCount: RequestCount(),
            metrics: metrics,
            control: GatewayControl(root: root) { [weak self] () async throws(ConfigurationError) -> [String] in
                try await self?.reload() ?? []
            }
        )
        let counts = OperationCounts()
        metrics.add(counts)
        metrics.add(network)
        // The nodes of a removed token must not stay until their leases end. Those of an expired one do, because its user may come back.
        _ = access.observe { [access] in
            let policy = access.policy
            ioNodes.withdraw { node in
                guard let permissions = node.owner.permissions(under: policy) else {
                    // With another configuration of the same provider its user may come back until the lease ends.
                    return node.owner.issuer.map { $0 == policy.verifier?.configuration.issuer } ?? false
                }
                return permissions.decide(node.request(.register, .nodes, by: node.owner.subject)).denial == nil
            }
        }
        let services = ClientServices(
            gate: Gate(network, access: access, audit: audit, counts: counts, pause: pause),
            accounts: accounts,
            workers: workers,
            connections: hub.streams,
            authenticator: Authenticator(access: access, log: audit, limits: settings.limits),
            requestLog: requestLog
        )
        let work = ClientWork(state: pause, connections: hub.streams, logger: logger.writingAll())
        try await start("work of clients", work, stopLimit: .milliseconds(10))
        let refusals = ConnectionRefusals(logger: logger.labelled(.http))
        let streams = WebSocketServer(
            configuration: streamConfiguration(limit, refusals),
            handler: WebSocketEndpoint(services: services, addressing: settings.transport.addressing),
            logger: logger.labelled(.websocket)
        )
        let rest = HTTPServer(
            configuration: restConfiguration(limit, refusals, services),
            router: router(services, manager, brokerAddress: broker.address),
            logger: logger.labelled(.http)
        )
        let health = HTTPServer(
            configuration: healthConfiguration(refusals),
            router: healthRouter(services, manager),
            logger: logger.labelled(.http)
        )
        let serve: @Sendable (ProtocolPeek, Int32, ConnectionOrigin) -> Void = { peek, descriptor, origin in
            switch peek {
            case .webSocket: streams.adopt(descriptor, peer: origin.peer, context: origin)
            case .health: health.adopt(descriptor, peer: origin.peer, context: origin)
            case .http, .undecided: rest.adopt(descriptor, peer: origin.peer, context: origin)
            }
        }
        var reception = PortListener.Reception.serve(serve)
        if let certificates {
            let relay = TLSRelay(
                certificates: certificates,
                maximumHandshakes: limit.undecided,
                handshakeTimeout: .seconds(settings.limits.handshakeTimeout),
                userTimeout: settings.limits.connectionTimeout,
                handlers: .init(serve: serve, refusePlainText: refusals.refusePlainText),
                logger: logger.labelled(.tls)
            )
            // Before the servers, so that it stops after them: what they have sent at their end still has to get through.
            let tls = ComponentGroup(components: [certificates, relay])
            try await start("TLS", tls, stopLimit: .milliseconds(150))
            metrics.add(relay, certificates)
            reception = .relay { relay.take($0, peer: $1) }
        }
        try await start("streams", StreamService(server: streams), stopLimit: .milliseconds(1200))
        network.http.observe(rest)
        metrics.add(services.authenticator)
        metrics.add(rest)
        metrics.add(streams)
        metrics.add(LogControl.standard)
        metrics.add(ProcessMetrics.write)
        // What the stop timeout has beyond the default belongs to pending requests.
        let drainTimeout = RESTService.drainTimeout - drain.delay + settings.stopTimeout - StopClock.defaultTimeout
        let service = RESTService(server: rest, health: health, drainTimeout: drainTimeout) {
            [heartbeat, spread] in heartbeat.announceStop(retryAfter: spread.delay)
        }
        try await start("REST", service, stopLimit: .milliseconds(700) + drainTimeout)

        let listener = PortListener(
            host: settings.host,
            port: settings.port,
            maximumUndecided: limit.undecided,
            decisionTimeout: .seconds(settings.limits.handshakeTimeout),
            proxies: settings.transport.usesProxyProtocol ? settings.transport.addressing.trustedProxies : nil,
            receive: reception,
            refuse: refusals.refuse,
            logger: logger.labelled(.http)
        )
        try await start("listener", listener, stopLimit: .milliseconds(150))
        if let port = settings.transport.plainPort {
            let plain = PlainPort(
                port: port,
                configuration: healthConfiguration(refusals),
                router: plainRouter(services, manager),
                refuse: refusals.refuse,
                logger: logger.labelled(.http)
            )
            try await start("plain port", plain, stopLimit: .milliseconds(200))
        }
        try await start("drain", drain, stopLimit: drain.delay + .milliseconds(50))
        let parts = Reloader.Parts(
            access: access,
            audit: audit,
            accounts: accounts,
            routing: routing,
            certificates: certificates,
            keys: keyRefresher,
            requestLog: requestLog,
            generatedToken: generatedToken,
            isStopping: { [drain] in drain.isDraining }
        )
        let reloader = Reloader(settings, parts, logger: logger.writingAll(), read: readSettings)
        self.reloader.withLock { $0 = reloader }
        if stopClock.reserved > stopClock.limit {
            logger.warning(
                "the components may take longer to stop than there is time for",
                metadata: ["add up to": "\(stopClock.reserved)", "limit": "\(stopClock.limit)"]
            )
        }
        let host = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
        let scheme = certificates == nil ? "http" : "https"
        return ("\(scheme)://\(host):\(listener.port ?? settings.port)", broker.address)
    }

    /// Returns the configured broker, which may have to be discovered; starts an embedded one if none is configured.
    private func brokerOptions() async throws -> MQTTClientOptions {
        if let broker = settings.broker { return broker }
        var configuration = EmbeddedBroker.Configuration()
        configuration.listen = settings.embeddedBrokerListen
        let broker = EmbeddedBroker(configuration: configuration, logger: logger.labelled(.broker))
        let coordinator = try await start("embedded broker", broker, stopLimit: .milliseconds(1000))
        broker.whenGivenUp { [weak coordinator] in coordinator?.requestDismissal() }
        let address = broker.address ?? configuration.listen
        if settings.isEmbeddedBrokerAnnounced {
            let announcement = try MDNSAnnouncement(
                host: configuration.listen.host,
                port: address.port,
                logger: logger.labelled(.broker)
            )
            let component = BrokerAnnouncement(announcement: announcement)
            try await start("broker announcement", component, stopLimit: .milliseconds(200))
        }
        return MQTTClientOptions(host: address.host, port: address.port)
    }

    func router(_ services: ClientServices, _ manager: CommunicationManager, brokerAddress: String) -> Router {
        let gate = services.gate
        var router = GatewayRouter { services.charge($0, forBody: $1) }
        PublishResource(gate: gate).register(in: &router)
        RawResource(gate: gate).register(in: &router)
        BatchResource(gate: gate).register(in: &router)
        TwoWayResource(services: services).register(in: &router)
        IoNodesResource(gate: gate).register(in: &router)
        IoValuesResource(gate: gate).register(in: &router)
        ContextsResource(gate: gate).register(in: &router)
        RulesResource(gate: gate).register(in: &router)
        HealthResource(manager: manager, access: gate.access, drain: drain, pause: pause).register(in: &router)
        AdminResource(gate: gate).register(in: &router)
        InfoResource(gate: gate, brokerAddress: brokerAddress, isBrokerEmbedded: settings.broker == nil)
            .register(in: &router)
        StatusResource(
            gate: gate,
            brokerAddress: brokerAddress,
            isBrokerEmbedded: settings.broker == nil,
            started: created
        ).register(in: &router)
        MetricsResource(gate: gate).register(in: &router)
        ContractResource().register(in: &router)
        let console = ConsoleResource()
        console.register(in: &router)
        ObjectsResource(gate: gate).register(in: &router)
        AgentsResource(gate: gate).register(in: &router)
        AccessResource(authenticator: services.authenticator).register(in: &router)
        EventStreamResource(services: services, heartbeat: heartbeat).register(in: &router)
        WebSocketEndpoint.registerPlain(in: &router)
        admit(services, sharedPaths: console.publicPaths, in: &router)
        return router.router
    }

    /// Returns the routes of connections whose first request asks about the health of the gateway.
    private func healthRouter(_ services: ClientServices, _ manager: CommunicationManager) -> Router {
        var router = GatewayRouter()
        HealthResource(manager: manager, access: services.gate.access, drain: drain, pause: pause)
            .register(in: &router)
        admit(services, sharedPaths: [], in: &router)
        return router.router
    }

    /// Returns the routes of the plain port, for probes and whatever else is only for this machine.
    private func plainRouter(_ services: ClientServices, _ manager: CommunicationManager) -> Router {
        var router = GatewayRouter()
        HealthResource(manager: manager, access: services.gate.access, drain: drain, pause: pause).register(in: &router)
        MetricsResource.registerPublic(metrics, in: &router)
        return router.router
    }

    private func admit(_ services: ClientServices, sharedPaths: Set<String>, in router: inout GatewayRouter) {
        let admission = RequestAdmission(
            authenticator: services.authenticator,
            accounts: services.accounts,
            publicPaths: router.publicPaths,
            sharedPaths: sharedPaths,
            hstsMaxAge: settings.transport.hstsMaxAge,
            addressing: settings.transport.addressing
        )
        router.admit { admission.admit($0) }
    }

    /// One thread that nothing else holds up. Its connections serve one request each: the next could be of another kind.
    private func healthConfiguration(_ refusals: ConnectionRefusals) -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration()
        configuration.threads = 1
        configuration.connectionLimit = 32
        configuration.connectionTimeout = 5
        configuration.requestTimeout = 5
        configuration.keepsConnections = false
        configuration.reports = requestLog.reports
        configuration.stopTimeout = .milliseconds(100)
        configuration.refuse = refusals.refuse
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }

    private func restConfiguration(
        _ limit: DescriptorLimit,
        _ refusals: ConnectionRefusals,
        _ services: ClientServices
    ) -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration()
        configuration.refuse = refusals.refuse
        configuration.reports = requestLog.reports
        configuration.ended = services.charge
        configuration.maximumBodySize = settings.limits.bodySize
        configuration.maximumHeaderSize = settings.limits.headerSize
        configuration.connectionLimit = min(limit.connections, settings.limits[.connections].total / 2)
        configuration.connectionTimeout = settings.limits.connectionTimeout
        configuration.requestTimeout = settings.limits.requestTimeout
        configuration.maximumPending = settings.limits[.requests].total
        configuration.maximumStreams = settings.limits.streams
        configuration.threads = settings.limits.httpThreads
        configuration.stopTimeout = RESTService.sendTimeout
        configuration.drainRetryAfter = 0...spread.seconds
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }

    private func streamConfiguration(
        _ limit: DescriptorLimit,
        _ refusals: ConnectionRefusals
    ) -> WebSocketServer.Configuration {
        var configuration = WebSocketServer.Configuration()
        configuration.refuse = refusals.refuse
        configuration.maximumConnections = min(limit.connections, settings.limits[.connections].total / 2)
        configuration.maximumPendingHandshakes = limit.undecided
        configuration.maximumMessageSize = settings.limits.bodySize
        configuration.handshakeTimeout = .seconds(settings.limits.handshakeTimeout)
        configuration.subprotocols = [WebSocketEndpoint.subprotocol]
        configuration.allowsCompression = settings.isWebSocketCompressed
        configuration.stopCode = CloseCode.shuttingDown.rawValue
        configuration.stopReason = { [spread] in spread.closeReason() }
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }
}
