import Access
import Base
import Cluster
import Coaty
import CoatyMQTT
import Coordination
import Edge
import Feeds
import Gate
import HTTPServer
import Logging
import Network
import WebSocketServer

/// The start of the components, each after its dependencies.
extension Gateway {
    func startChildren() async throws -> RunningGateway {
        if case .open(let who?) = mode {
            logger.labelled(.access).warning("clients need no token", metadata: ["access": "\(who)"])
        }
        let trafficSessions = TrafficSessions(feeds: settings.limits[.brokerConnections].total)
        let brokerSessions =
            settings.limits[.ioNodes].total + settings.limits[.identities].total + trafficSessions.maximum
            + settings.limits.rawConnections + (settings.isDemo ? 1 : 0)
        let descriptors = try DescriptorLimit(
            // One more session observes the agents of other namespaces.
            agents: brokerSessions + 1,
            isEncrypted: certificates != nil,
            undecided: settings.limits.undecidedConnections
        )
        var broker = try await startBroker()
        broker.checkInterval = settings.brokerCheckInterval
        broker.version = settings.mqttVersion
        broker.maximumPublicationSize = settings.limits.publicationSize
        broker.maximumMessageSize = settings.limits.maximumEventSize
        broker.maximumPacketSize = broker.maximumMessageSize + MQTTClientOptions.maximumHeadSize
        let workers = WorkerPool(name: "events", threads: settings.limits.eventWorkers)
        let network = try await startNetwork(broker, trafficSessions, workers, limits(descriptors))
        let services = clientServices(network, workers)
        let listener = try await startServers(services, network, descriptors, brokerAddress: broker.address)
        // Other gateways have no certificate and send no PROXY header.
        let isOpen = !settings.transport.usesProxyProtocol && settings.transport.requiresClientCertificate != true
        if isOpen, let peers = network.peers, let port = listener.port {
            let (host, isEncrypted, broker) = (settings.host, certificates != nil, broker.host)
            peers.announceURL { PeerProbe.url(host: host, port: port, isEncrypted: isEncrypted, broker: broker) }
        }
        try await start("readiness", drain, stopLimit: drain.delay + .milliseconds(50))
        reloader.withLock { $0 = makeReloader(network) }
        if stopClock.reserved > stopClock.limit {
            logger.warning(
                "the components may need more time to stop than the stop timeout allows",
                metadata: ["add up to": "\(stopClock.reserved)", "limit": "\(stopClock.limit)"]
            )
        }
        let host = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
        let scheme = certificates == nil ? "http" : "https"
        return RunningGateway(
            url: "\(scheme)://\(host):\(listener.port ?? settings.port)",
            broker: broker.address,
            manager: network.manager
        )
    }

    /// Starts a component below the root.
    ///
    /// - Parameter stopLimit: maximum time to stop the component. The sum for all components must not exceed
    ///   ``StopClock/limit``.
    @discardableResult
    func start(
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

    /// Returns the configured broker, which may be discovered; starts an embedded one if none is configured.
    private func startBroker() async throws -> MQTTClientOptions {
        if let broker = settings.broker { return broker }
        var configuration = EmbeddedBroker.Configuration()
        configuration.listen = settings.embeddedBrokerListen
        // If an operator has chosen a port, clients know it.
        if settings.given["embedded-broker-listen"] != nil, configuration.listen.port != 0 {
            configuration.maxPortAttempts = 1
        }
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

    /// Starts the agents of the gateway and of its clients, and the components that observe the network for clients.
    private func startNetwork(
        _ broker: MQTTClientOptions,
        _ trafficSessions: TrafficSessions,
        _ workers: WorkerPool,
        _ limits: Limits
    ) async throws -> NetworkParts {
        let agent = try await GatewayAgent(
            settings: settings,
            communication: agentOptions(broker),
            isInCluster: clusterKey != nil,
            logger: logger
        )
        let manager = agent.communicationManager
        let rawSessions = RawSessions(maximum: limits.rawConnections, open: manager.openRawSession)
        let otherNamespaces = OtherNamespaces(manager, messageCounts: trafficSessions.messageCounts)
        // If the broker translates dots to slashes, it would send every event of every namespace.
        let countsAgents = broker.topicDialect == .plain
        let observers = ComponentGroup(
            components: [trafficSessions, rawSessions] + (countsAgents ? [otherNamespaces] : [])
        )
        try await start("observing sessions", observers, stopLimit: .milliseconds(700))
        try await start("event workers", workers, stopLimit: .milliseconds(200))
        let objects = ObjectRegistry(
            manager: manager,
            limits: limits,
            checkInterval: settings.agentCheckInterval,
            logger: logger.labelled(.feeds)
        )
        let peers = clusterKey.map { key in
            Peers(manager: manager, key: key, memory: settings.resumeWindow, logger: logger.labelled(.broker))
        }
        let peerObjects = peers.map { PeerObjects(peers: $0, objects: objects, logger: logger.labelled(.feeds)) }
        let peerNodes = peers.map { PeerNodes(peers: $0, objects: objects) }
        let owners = ObjectOwners(others: peerObjects)
        let keptObjects = KeptObjects(
            manager: manager,
            owners: owners,
            peers: peerObjects,
            limits: limits,
            logger: logger.labelled(.feeds)
        )
        try await start("objects", ComponentGroup(components: [objects, keptObjects]), stopLimit: .milliseconds(200))
        let queries = Queries(
            threads: limits.queryWorkers,
            maximumSteps: limits.querySteps,
            timeout: .milliseconds(limits.queryTimeout)
        )
        try await start("queries", queries, stopLimit: .milliseconds(40))
        try await start("broker session", agent, stopLimit: .milliseconds(1500))

        let farewells = LateFarewells(manager: manager, logger: logger.labelled(.broker))
        let ioNodes = ioNodeRegistry(broker, peerNodes, farewells)
        let accounts = Accounts(limits, logger: logger.labelled(.limits))
        let peerIdentities = peers.map { PeerIdentities(peers: $0) }
        let identities = ClientIdentities(
            options: clientOptions(broker),
            limit: limits[.identities].total,
            tokens: ResumeTokens(clusterKey),
            peers: peerIdentities,
            farewells: farewells,
            logger: logger.labelled(.broker)
        )
        var agents: [any Component] = [ioNodes, identities]
        let demoOptions = settings.isDemo ? clientOptions(broker) : nil
        if let demoOptions {
            agents.append(try await DemoAgent(communication: demoOptions, logger: logger.labelled(.broker)))
        }
        let name = settings.isDemo ? "agents of clients, demo agent" : "agents of clients"
        try await start(name, ComponentGroup(components: agents), stopLimit: .milliseconds(1100))

        let hub = FeedHub(
            manager: manager,
            ioNodes: ioNodes,
            routing: agent.routing,
            objects: objects,
            resumeWindow: settings.resumeWindow,
            limits: limits,
            sessions: trafficSessions,
            rawSessions: rawSessions,
            workers: workers,
            cluster: peers.flatMap { peers in clusterKey.map { ClusterCursors($0, peers) } },
            logger: logger.labelled(.feeds)
        )
        accounts.refusals.setBrokerRefusalHandler { [streams = hub.streams, audit] publication, client in
            audit.refusedByBroker(publication, of: client)
            streams.report(Problems.refusedByBroker(publication), to: client)
        }
        var routingCluster: RoutingCluster?
        if let peers, let peerObjects {
            let routing = await RoutingCluster(
                agent.routing,
                manager: manager,
                peers: peers,
                logger: logger.labelled(.routing)
            )
            routingCluster = routing
            peers.add(routing)
            peerObjects.setAdopt { [access] object, record, end in
                let keeper = Principal(record.keeper ?? .anonymous, address: "", under: access.policy)
                let owner = KeptObjects.Owner(principal: keeper, account: accounts.account(of: keeper))
                try keptObjects.adopt(object, of: record.owner, for: owner, until: end)
            }
            peers.add(peerObjects)
            if let peerNodes {
                peers.add(peerNodes)
                peerNodes.start(ioNodes.functions(limits, accounts, access, logger.labelled(.broker)), manager)
            }
            if let peerIdentities {
                peers.add(peerIdentities)
                peerIdentities.start(identities, manager)
            }
            peers.add(PeerFeeds(hub) { [weak peers] in peers?.noteChange(of: "feeds") })
            let cluster = ComponentGroup(components: [routing, peers])
            try await start("cluster", cluster, stopLimit: .milliseconds(50))
        }
        let memory = ResidentMemory(accounts, logger: logger.labelled(.limits)) { [streams = hub.streams] in
            streams.abortLargest(of: $0)
        }
        let watches = ComponentGroup(components: [memory, keyRefresher])
        try await start("resident memory and keys", watches, stopLimit: .milliseconds(100))
        return NetworkParts(
            manager: manager,
            feeds: hub,
            objects: objects,
            queries: queries,
            owners: owners,
            keptObjects: keptObjects,
            ioNodes: ioNodes,
            routing: agent.routing,
            identities: identities,
            demoMessages: demoOptions?.messageCounts,
            accounts: accounts,
            residentMemory: memory,
            otherNamespaces: otherNamespaces,
            peers: peers,
            peerNodes: peerNodes,
            routingCluster: routingCluster,
            metrics: metrics,
            control: GatewayControl(root: root) { [weak self] in
                try await self?.reload() ?? []
            }
        )
    }

    /// Returns the services that all connections share, and ends the nodes of clients together with their permissions.
    private func clientServices(_ network: NetworkParts, _ workers: WorkerPool) -> ClientServices {
        let counts = OperationCounts()
        metrics.add(counts)
        metrics.add(network)
        // The nodes of a removed token must not stay until their leases end. Those of an expired token stay, because
        // its user may return.
        _ = access.observe { [access] in
            let policy = access.policy
            network.ioNodes.withdraw { node in
                guard let permissions = policy.permissions(ofOwner: node.owner) else {
                    // Under a changed configuration of the same provider, the user may return until the lease ends.
                    return node.owner.issuer.map { $0 == policy.verifier?.configuration.issuer } ?? false
                }
                return permissions.decide(node.request(.register, .nodes, by: node.owner.subject)).denial == nil
            }
            // As for nodes. Whether single objects are still allowed is not checked.
            network.keptObjects.withdraw { owner in
                guard let permissions = policy.permissions(ofOwner: owner) else {
                    return owner.issuer.map { $0 == policy.verifier?.configuration.issuer } ?? false
                }
                return permissions.hasGrant(.publish, .advertise)
            }
        }
        return ClientServices(
            gate: Gate(network, access: access, audit: audit, counts: counts, pause: pause),
            accounts: network.accounts,
            workers: workers,
            connections: network.feeds.streams,
            authenticator: Authenticator(access: access, log: audit, limits: settings.limits),
            requestLog: requestLog
        )
    }

    private func makeReloader(_ network: NetworkParts) -> Reloader {
        let parts = Reloader.Parts(
            access: access,
            audit: audit,
            accounts: network.accounts,
            routing: network.routing,
            certificates: certificates,
            keys: keyRefresher,
            requestLog: requestLog,
            generatedToken: generatedToken,
            isStopping: { [drain] in drain.isDraining }
        )
        return Reloader(settings, parts, logger: logger.writingAll(), read: readSettings)
    }
}
