import Coaty
import Coordination
import Edge
import Gate
import HTTPServer
import Logs
import WebSocketServer

/// The start of the servers and of the port.
extension Gateway {
    /// Starts the servers and the port.
    ///
    /// - Returns: the listener of the port.
    func startServers(
        _ services: ClientServices,
        _ network: NetworkParts,
        _ descriptors: DescriptorLimit,
        brokerAddress: String
    ) async throws -> PortListener {
        let work = ClientWork(state: pause, connections: services.connections, logger: logger.writingAll())
        try await start("work of clients", work, stopLimit: .milliseconds(10))
        let refusals = ConnectionRefusals(logger: logger.labelled(.http))
        let configurations = ServerConfigurations(
            settings: settings,
            descriptors: descriptors,
            refusals: refusals,
            requestLog: requestLog,
            spread: spread,
            drain: drain
        )
        let routes = routes(services, network.manager, brokerAddress: brokerAddress)
        let streams = WebSocketServer(
            configuration: configurations.streams,
            handler: WebSocketEndpoint(services: services, addressing: settings.transport.addressing),
            logger: logger.labelled(.websocket)
        )
        let rest = HTTPServer(
            configuration: configurations.rest(services),
            router: routes.all,
            logger: logger.labelled(.http)
        )
        let probes = HTTPServer(
            configuration: configurations.probes,
            router: routes.probes,
            logger: logger.labelled(.http)
        )
        let reception = try await startTLS(descriptors, refusals) { peek, descriptor, origin in
            switch peek {
            case .webSocket: streams.adopt(descriptor, peer: origin.peer, context: origin)
            case .health: probes.adopt(descriptor, peer: origin.peer, context: origin)
            case .http, .undecided: rest.adopt(descriptor, peer: origin.peer, context: origin)
            }
        }
        try await start("streams", StreamService(server: streams), stopLimit: .milliseconds(1200))
        use.observe(rest)
        metrics.add(services.authenticator)
        metrics.add(rest)
        metrics.add(streams)
        metrics.add(idempotency)
        metrics.add(LogControl.standard)
        metrics.add(ProcessMetrics.write)
        // If the stop timeout is longer than the default, the additional time is for pending requests.
        let drainTimeout = RESTService.drainTimeout - drain.delay + settings.stopTimeout - StopClock.defaultTimeout
        let service = RESTService(server: rest, health: probes, drainTimeout: drainTimeout) {
            [heartbeat, spread] in heartbeat.announceStop(retryAfter: spread.delay)
        }
        try await start("REST", service, stopLimit: .milliseconds(700) + drainTimeout)

        let listener = PortListener(
            host: settings.host,
            port: settings.port,
            maximumUndecided: descriptors.undecided,
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
                configuration: configurations.probes,
                router: routes.plain,
                refuse: refusals.refuse,
                logger: logger.labelled(.http)
            )
            try await start("plain port", plain, stopLimit: .milliseconds(200))
        }
        return listener
    }

    func routes(
        _ services: ClientServices,
        _ manager: CommunicationManager,
        brokerAddress: String
    ) -> GatewayRoutes {
        GatewayRoutes(
            services: services,
            addressing: settings.transport.addressing,
            hstsMaxAge: settings.transport.hstsMaxAge,
            brokerAddress: brokerAddress,
            isBrokerEmbedded: settings.broker == nil,
            started: created,
            health: HealthResource(manager: manager, access: access, drain: drain, pause: pause),
            heartbeat: heartbeat,
            metrics: metrics,
            use: use,
            idempotency: idempotency
        )
    }

    /// Starts the relay that terminates TLS, if there are certificates.
    ///
    /// - Returns: the destination of the port's connections: the relay, or the servers directly.
    private func startTLS(
        _ descriptors: DescriptorLimit,
        _ refusals: ConnectionRefusals,
        serve: @escaping @Sendable (ProtocolPeek, Int32, ConnectionOrigin) -> Void
    ) async throws -> PortListener.Reception {
        guard let certificates else { return .serve(serve) }
        let relay = TLSRelay(
            certificates: certificates,
            maximumHandshakes: descriptors.undecided,
            handshakeTimeout: .seconds(settings.limits.handshakeTimeout),
            userTimeout: settings.limits.connectionTimeout,
            handlers: .init(serve: serve, refusePlainText: refusals.refusePlainText),
            logger: logger.labelled(.tls)
        )
        // Started before the servers, so that it stops after them: their last bytes must still be sent.
        let tls = ComponentGroup(components: [certificates, relay])
        try await start("TLS", tls, stopLimit: .milliseconds(150))
        metrics.add(relay, certificates)
        return .relay { relay.take($0, peer: $1) }
    }
}
