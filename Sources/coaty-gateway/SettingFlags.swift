import ArgumentParser
import CoatyGateway

/// The settings as flags, except the token, which other users of the machine could see. Their names, placeholders and
/// help come from `GatewaySettings.all`.
struct SettingFlags: ParsableArguments {
    @Option(help: help("host")) var host: String?
    @Option(help: help("port")) var port: String?
    @Option(help: help("access")) var access: String?
    @Option(help: help("audit-log")) var auditLog: String?
    @Option(help: help("allowed-origins")) var allowedOrigins: String?
    @Option(help: help("allowed-hosts")) var allowedHosts: String?
    @Option(help: help("namespace")) var namespace: String?
    @Option(help: help("name")) var name: String?
    @Option(help: help("broker")) var broker: String?
    @Option(help: help("broker-ca-file")) var brokerCaFile: String?
    @Option(help: help("broker-certificate-file")) var brokerCertificateFile: String?
    @Option(help: help("broker-key-file")) var brokerKeyFile: String?
    @Option(help: help("broker-keepalive")) var brokerKeepalive: String?
    @Option(help: help("broker-check-interval")) var brokerCheckInterval: String?
    @Option(help: help("mqtt-version")) var mqttVersion: String?
    @Option(help: help("maximum-publication-size")) var maximumPublicationSize: String?
    @Option(help: help("broker-connect-timeout")) var brokerConnectTimeout: String?
    @Option(help: help("broker-filters-per-packet")) var brokerFiltersPerPacket: String?
    @Option(help: help("topic-dialect")) var topicDialect: String?
    @Option(help: help("broker-user")) var brokerUser: String?
    @Option(help: help("broker-password-file")) var brokerPasswordFile: String?
    @Option(help: help("broker-discovery")) var brokerDiscovery: String?
    @Option(help: help("broker-discovery-tls")) var brokerDiscoveryTls: String?
    @Option(help: help("embedded-broker-listen")) var embeddedBrokerListen: String?
    @Option(help: help("embedded-broker-announcement")) var embeddedBrokerAnnouncement: String?
    @Option(help: help("state-directory")) var stateDirectory: String?
    @Option(help: help("cluster-key-file")) var clusterKeyFile: String?
    @Option(help: help("agent-check-interval")) var agentCheckInterval: String?
    @Option(help: help("resume-window")) var resumeWindow: String?
    @Option(help: help("websocket-compression")) var websocketCompression: String?
    @Option(help: help("demo")) var demo: String?
    @Option(help: help("log-format")) var logFormat: String?
    @Option(help: help("log-level")) var logLevel: String?
    @Option(help: help("log-levels")) var logLevels: String?
    @Option(help: help("request-log")) var requestLog: String?
    @Option(help: help("slow-request")) var slowRequest: String?
    @Option(help: help("tls-certificate-file")) var tlsCertificateFile: String?
    @Option(help: help("tls-key-file")) var tlsKeyFile: String?
    @Option(help: help("tls-client-ca-file")) var tlsClientCaFile: String?
    @Option(help: help("tls-client-certificates")) var tlsClientCertificates: String?
    @Option(help: help("hsts-max-age")) var hstsMaxAge: String?
    @Option(help: help("plain-port")) var plainPort: String?
    @Option(help: help("trusted-proxies")) var trustedProxies: String?
    @Option(help: help("forwarded-header")) var forwardedHeader: String?
    @Option(help: help("proxy-protocol")) var proxyProtocol: String?
    @Option(help: help("maximum-memory")) var maximumMemory: String?
    @Option(help: help("maximum-memory-per-client")) var maximumMemoryPerClient: String?
    @Option(help: help("minimum-memory-per-client")) var minimumMemoryPerClient: String?
    @Option(help: help("maximum-replay-memory")) var maximumReplayMemory: String?
    @Option(help: help("maximum-registry-memory")) var maximumRegistryMemory: String?
    @Option(help: help("maximum-registry-objects")) var maximumRegistryObjects: String?
    @Option(help: help("maximum-registry-object-size")) var maximumRegistryObjectSize: String?
    @Option(help: help("maximum-query-steps")) var maximumQuerySteps: String?
    @Option(help: help("query-timeout")) var queryTimeout: String?
    @Option(help: help("maximum-connections")) var maximumConnections: String?
    @Option(help: help("maximum-connections-per-client")) var maximumConnectionsPerClient: String?
    @Option(help: help("maximum-unauthenticated-connections")) var maximumUnauthenticatedConnections: String?
    @Option(help: help("maximum-unauthenticated-connections-per-client"))
    var maximumUnauthenticatedConnectionsPerClient: String?
    @Option(help: help("maximum-subscriptions")) var maximumSubscriptions: String?
    @Option(help: help("maximum-subscriptions-per-client")) var maximumSubscriptionsPerClient: String?
    @Option(help: help("maximum-feeds")) var maximumFeeds: String?
    @Option(help: help("maximum-feeds-per-client")) var maximumFeedsPerClient: String?
    @Option(help: help("maximum-pending-requests")) var maximumPendingRequests: String?
    @Option(help: help("maximum-pending-requests-per-client")) var maximumPendingRequestsPerClient: String?
    @Option(help: help("maximum-outbox-bytes")) var maximumOutboxBytes: String?
    @Option(help: help("maximum-outbox-bytes-per-client")) var maximumOutboxBytesPerClient: String?
    @Option(help: help("maximum-identities")) var maximumIdentities: String?
    @Option(help: help("maximum-identities-per-client")) var maximumIdentitiesPerClient: String?
    @Option(help: help("maximum-broker-connections")) var maximumBrokerConnections: String?
    @Option(help: help("maximum-broker-connections-per-client")) var maximumBrokerConnectionsPerClient: String?
    @Option(help: help("maximum-io-nodes")) var maximumIoNodes: String?
    @Option(help: help("maximum-io-nodes-per-client")) var maximumIoNodesPerClient: String?
    @Option(help: help("maximum-advertised-objects")) var maximumAdvertisedObjects: String?
    @Option(help: help("maximum-advertised-objects-per-client")) var maximumAdvertisedObjectsPerClient: String?
    @Option(help: help("maximum-kept-object-bytes")) var maximumKeptObjectBytes: String?
    @Option(help: help("maximum-kept-object-bytes-per-client")) var maximumKeptObjectBytesPerClient: String?
    @Option(help: help("maximum-queries")) var maximumQueries: String?
    @Option(help: help("maximum-queries-per-client")) var maximumQueriesPerClient: String?
    @Option(help: help("maximum-idempotency-keys")) var maximumIdempotencyKeys: String?
    @Option(help: help("maximum-idempotency-keys-per-client")) var maximumIdempotencyKeysPerClient: String?
    @Option(help: help("maximum-outbox-publications")) var maximumOutboxPublications: String?
    @Option(help: help("maximum-kept-objects")) var maximumKeptObjects: String?
    @Option(help: help("maximum-object-lifetime")) var maximumObjectLifetime: String?
    @Option(help: help("maximum-event-size")) var maximumEventSize: String?
    @Option(help: help("maximum-event-values")) var maximumEventValues: String?
    @Option(help: help("maximum-waiting-events")) var maximumWaitingEvents: String?
    @Option(help: help("maximum-peer-feeds")) var maximumPeerFeeds: String?
    @Option(help: help("maximum-raw-connections")) var maximumRawConnections: String?
    @Option(help: help("maximum-subscriptions-per-connection")) var maximumSubscriptionsPerConnection: String?
    @Option(help: help("maximum-streams")) var maximumStreams: String?
    @Option(help: help("maximum-work-rate")) var maximumWorkRate: String?
    @Option(help: help("maximum-body-size")) var maximumBodySize: String?
    @Option(help: help("maximum-discarded-body-size")) var maximumDiscardedBodySize: String?
    @Option(help: help("discard-timeout")) var discardTimeout: String?
    @Option(help: help("maximum-header-size")) var maximumHeaderSize: String?
    @Option(help: help("maximum-timeout")) var maximumTimeout: String?
    @Option(help: help("handshake-timeout")) var handshakeTimeout: String?
    @Option(help: help("request-timeout")) var requestTimeout: String?
    @Option(help: help("connection-timeout")) var connectionTimeout: String?
    @Option(help: help("keep-alive-timeout")) var keepAliveTimeout: String?
    @Option(help: help("drain-delay")) var drainDelay: String?
    @Option(help: help("stop-timeout")) var stopTimeout: String?
    @Option(help: help("reconnect-spread")) var reconnectSpread: String?
    @Option(help: help("http-threads")) var httpThreads: String?
    @Option(help: help("event-threads")) var eventThreads: String?
    @Option(help: help("query-threads")) var queryThreads: String?
    @Option(help: help("maximum-buffered-events")) var maximumBufferedEvents: String?
    @Option(help: help("maximum-queued-bytes")) var maximumQueuedBytes: String?
    @Option(help: help("maximum-response-bytes")) var maximumResponseBytes: String?
    @Option(help: help("maximum-filter-properties")) var maximumFilterProperties: String?
    @Option(help: help("maximum-filter-values")) var maximumFilterValues: String?
    @Option(help: help("maximum-fields")) var maximumFields: String?
    @Option(help: help("maximum-batch-publications")) var maximumBatchPublications: String?
    @Option(help: help("maximum-deadvertised-ids")) var maximumDeadvertisedIds: String?
    @Option(help: help("maximum-agent-name-size")) var maximumAgentNameSize: String?
    @Option(help: help("maximum-io-node-points")) var maximumIoNodePoints: String?
    @Option(help: help("maximum-io-node-size")) var maximumIoNodeSize: String?
    @Option(help: help("maximum-agent-event-size")) var maximumAgentEventSize: String?
    @Option(help: help("maximum-agent-event-values")) var maximumAgentEventValues: String?
    @Option(help: help("maximum-answerable-requests")) var maximumAnswerableRequests: String?
    @Option(help: help("maximum-answerable-request-bytes")) var maximumAnswerableRequestBytes: String?
    @Option(help: help("maximum-answerable-requests-per-client")) var maximumAnswerableRequestsPerClient: String?
    @Option(help: help("maximum-failed-attempts")) var maximumFailedAttempts: String?
    @Option(help: help("maximum-query-memory")) var maximumQueryMemory: String?
    @Option(help: help("maximum-listed-objects")) var maximumListedObjects: String?
    @Option(help: help("maximum-departed-agents")) var maximumDepartedAgents: String?
    @Option(help: help("maximum-filter-steps")) var maximumFilterSteps: String?
    @Option(help: help("maximum-throttled-objects")) var maximumThrottledObjects: String?
    @Option(help: help("maximum-queued-replies")) var maximumQueuedReplies: String?
    @Option(help: help("maximum-waiting-responses")) var maximumWaitingResponses: String?
    @Option(help: help("maximum-discover-answers")) var maximumDiscoverAnswers: String?
    @Option(help: help("maximum-agent-publications")) var maximumAgentPublications: String?
    @Option(help: help("maximum-waiting-context-changes")) var maximumWaitingContextChanges: String?
    @Option(help: help("maximum-observed-contexts")) var maximumObservedContexts: String?
    @Option(help: help("maximum-observed-io-nodes")) var maximumObservedIoNodes: String?
    @Option(help: help("maximum-observed-context-memory")) var maximumObservedContextMemory: String?
    @Option(help: help("maximum-undecided-connections")) var maximumUndecidedConnections: String?
    @Option(help: help("maximum-failing-addresses")) var maximumFailingAddresses: String?
    @Option(help: help("maximum-token-size")) var maximumTokenSize: String?
    @Option(help: help("maximum-verified-tokens")) var maximumVerifiedTokens: String?
    @Option(help: help("maximum-tickets")) var maximumTickets: String?
    @Option(help: help("maximum-tickets-per-client")) var maximumTicketsPerClient: String?
    @Option(help: help("maximum-audit-lines")) var maximumAuditLines: String?
    @Option(help: help("maximum-audit-lines-per-client")) var maximumAuditLinesPerClient: String?
    // Former names.
    @Option(help: .hidden) var outboxPublications: String?
    @Option(help: .hidden) var outboxBytes: String?
    @Option(help: .hidden) var resumeMemory: String?

    /// The given flags, by the names of settings: the name of `maximumMemory`, which is stored as `_maximumMemory`, is
    /// `maximum-memory`.
    var values: [String: String] {
        var values: [String: String] = [:]
        for child in Mirror(reflecting: self).children {
            guard let label = child.label, let flag = child.value as? Option<String?> else { continue }
            values[Self.setting(of: label.dropFirst())] = flag.wrappedValue
        }
        return values
    }

    private static func setting(of property: Substring) -> String {
        property.reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : String($1) }
    }

    private static func help(_ name: String) -> ArgumentHelp {
        let setting = GatewaySettings.all.first { $0.name == name }
        return ArgumentHelp(setting?.help ?? "", valueName: setting?.placeholder ?? name)
    }
}
