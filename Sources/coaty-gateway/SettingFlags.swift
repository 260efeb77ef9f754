import ArgumentParser
import CoatyGateway

/// The settings as flags, except the token, which other users of the machine could see. Their names, placeholders and help come from `GatewaySettings.all`.
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
    @Option(help: help("broker-connect-timeout")) var brokerConnectTimeout: String?
    @Option(help: help("broker-filters-per-packet")) var brokerFiltersPerPacket: String?
    @Option(help: help("topic-dialect")) var topicDialect: String?
    @Option(help: help("broker-discovery")) var brokerDiscovery: String?
    @Option(help: help("embedded-broker-listen")) var embeddedBrokerListen: String?
    @Option(help: help("embedded-broker-announcement")) var embeddedBrokerAnnouncement: String?
    @Option(help: help("outbox-publications")) var outboxPublications: String?
    @Option(help: help("outbox-bytes")) var outboxBytes: String?
    @Option(help: help("maximum-body-size")) var maximumBodySize: String?
    @Option(help: help("maximum-timeout")) var maximumTimeout: String?
    @Option(help: help("state-directory")) var stateDirectory: String?
    @Option(help: help("maximum-io-nodes")) var maximumIoNodes: String?
    @Option(help: help("maximum-identities")) var maximumIdentities: String?
    @Option(help: help("resume-window")) var resumeWindow: String?
    @Option(help: help("resume-memory")) var resumeMemory: String?
    @Option(help: help("websocket-compression")) var websocketCompression: String?
    @Option(help: help("log-level")) var logLevel: String?

    /// The flags that were given, by the names of settings.
    var values: [String: String] {
        [
            "host": host,
            "port": port,
            "access": access,
            "audit-log": auditLog,
            "allowed-origins": allowedOrigins,
            "allowed-hosts": allowedHosts,
            "namespace": namespace,
            "name": name,
            "broker": broker,
            "broker-ca-file": brokerCaFile,
            "broker-certificate-file": brokerCertificateFile,
            "broker-key-file": brokerKeyFile,
            "broker-keepalive": brokerKeepalive,
            "broker-connect-timeout": brokerConnectTimeout,
            "broker-filters-per-packet": brokerFiltersPerPacket,
            "topic-dialect": topicDialect,
            "broker-discovery": brokerDiscovery,
            "embedded-broker-listen": embeddedBrokerListen,
            "embedded-broker-announcement": embeddedBrokerAnnouncement,
            "outbox-publications": outboxPublications,
            "outbox-bytes": outboxBytes,
            "maximum-body-size": maximumBodySize,
            "maximum-timeout": maximumTimeout,
            "state-directory": stateDirectory,
            "maximum-io-nodes": maximumIoNodes,
            "maximum-identities": maximumIdentities,
            "resume-window": resumeWindow,
            "resume-memory": resumeMemory,
            "websocket-compression": websocketCompression,
            "log-level": logLevel,
        ].compactMapValues(\.self)
    }

    private static func help(_ name: String) -> ArgumentHelp {
        let setting = GatewaySettings.all.first { $0.name == name }
        return ArgumentHelp(setting?.help ?? "", valueName: setting?.placeholder ?? name)
    }
}
