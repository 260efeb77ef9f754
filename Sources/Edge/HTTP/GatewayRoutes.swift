package import Coaty
package import HTTPServer
package import Measurement

/// The routes of the gateway's HTTP servers.
package struct GatewayRoutes {
    let services: ClientServices
    let addressing: ClientAddressing
    /// In seconds; 0 sends no `Strict-Transport-Security`.
    let hstsMaxAge: Int
    let brokerAddress: String
    let isBrokerEmbedded: Bool
    /// When the gateway was created.
    let started: CoatyTimestamp
    let health: HealthResource
    let heartbeat: Heartbeat
    let metrics: Metrics
    /// Counts the requests to ``all``.
    let use: HTTPUse
    /// The first answers to requests with an `Idempotency-Key`.
    let idempotency: IdempotencyTable

    package init(
        services: ClientServices,
        addressing: ClientAddressing,
        hstsMaxAge: Int,
        brokerAddress: String,
        isBrokerEmbedded: Bool,
        started: CoatyTimestamp,
        health: HealthResource,
        heartbeat: Heartbeat,
        metrics: Metrics,
        use: HTTPUse,
        idempotency: IdempotencyTable
    ) {
        self.services = services
        self.addressing = addressing
        self.hstsMaxAge = hstsMaxAge
        self.brokerAddress = brokerAddress
        self.isBrokerEmbedded = isBrokerEmbedded
        self.started = started
        self.health = health
        self.heartbeat = heartbeat
        self.metrics = metrics
        self.use = use
        self.idempotency = idempotency
    }

    /// The routes of the API and the console.
    package var all: Router {
        let gate = services.gate
        var router = GatewayRouter(idempotency) { [services] in services.charge($0, forBody: $1) }
        PublishResource(gate: gate).register(in: &router)
        RawResource(gate: gate).register(in: &router)
        BatchResource(gate: gate).register(in: &router)
        TwoWayResource(services: services).register(in: &router)
        IoNodesResource(gate: gate).register(in: &router)
        IoValuesResource(gate: gate).register(in: &router)
        ContextsResource(gate: gate).register(in: &router)
        RulesResource(gate: gate).register(in: &router)
        health.register(in: &router)
        AdminResource(gate: gate).register(in: &router)
        ConnectionsResource(gate: gate).register(in: &router)
        InfoResource(gate: gate, brokerAddress: brokerAddress, isBrokerEmbedded: isBrokerEmbedded)
            .register(in: &router)
        StatusResource(
            gate: gate,
            brokerAddress: brokerAddress,
            isBrokerEmbedded: isBrokerEmbedded,
            started: started,
            use: use
        )
        .register(in: &router)
        MetricsResource(gate: gate).register(in: &router)
        ContractResource().register(in: &router)
        let console = ConsoleResource()
        console.register(in: &router)
        ObjectsResource(gate: gate).register(in: &router)
        AgentsResource(gate: gate).register(in: &router)
        AccessResource(authenticator: services.authenticator).register(in: &router)
        EventStreamResource(services: services, heartbeat: heartbeat).register(in: &router)
        WebSocketEndpoint.registerPlain(in: &router)
        router.suggestPaths()
        admit(sharedPaths: console.publicPaths, in: &router)
        return router.router
    }

    /// The routes of connections whose first request is a health probe.
    package var probes: Router {
        var router = GatewayRouter(idempotency)
        health.register(in: &router)
        admit(sharedPaths: [], in: &router)
        return router.router
    }

    /// The routes of the plain port, which only this machine can reach: clients are not authenticated there.
    package var plain: Router {
        var router = GatewayRouter(idempotency)
        health.register(in: &router)
        MetricsResource.registerPublic(metrics, in: &router)
        return router.router
    }

    private func admit(sharedPaths: Set<String>, in router: inout GatewayRouter) {
        let admission = RequestAdmission(
            client: ClientAdmission(authenticator: services.authenticator, addressing: addressing),
            accounts: services.accounts,
            publicPaths: router.publicPaths,
            sharedPaths: sharedPaths,
            hstsMaxAge: hstsMaxAge
        )
        router.admit { admission.admit($0) }
    }
}
