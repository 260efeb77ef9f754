import ArgumentParser
import Base
import CoatyGateway

/// The settings as flags, except the token, which other users of the machine could see. Their names, placeholders and
/// help come from `GatewaySettings`, and they are grouped as there.
struct SettingFlags: ParsableArguments {
    @OptionGroup(title: "Server") var server: ServerFlags
    @OptionGroup(title: "Broker") var broker: BrokerFlags
    @OptionGroup(title: "State and cluster") var cluster: ClusterFlags
    @OptionGroup(title: "Log") var log: LogFlags
    @OptionGroup(title: "TLS and proxies") var transport: TransportFlags
    @OptionGroup(title: "Limits") var limits: LimitFlags

    /// The given flags, by the names of settings.
    var values: [String: String] {
        get throws(InvalidConfiguration) {
            var values = try GatewaySettings.limitFlags(limits.limit)
            for group in [server, broker, cluster, log, transport] as [any ParsableArguments] {
                // The name of `brokerUser`, which is stored as `_brokerUser`, is `broker-user`.
                for child in Mirror(reflecting: group).children {
                    guard let label = child.label, let flag = child.value as? Option<String?> else { continue }
                    values[Self.setting(of: label.dropFirst())] = flag.wrappedValue
                }
            }
            return values
        }
    }

    private static func setting(of property: Substring) -> String {
        property.reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : String($1) }
    }
}

struct LimitFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp("A limit; repeatable. \"coaty-gateway help limits\" lists them.", valueName: "name=value")
    )
    var limit: [String] = []
}

struct ServerFlags: ParsableArguments {
    @Option(help: help("host")) var host: String?
    @Option(help: help("port")) var port: String?
    @Option(help: help("access")) var access: String?
    @Option(help: help("audit-log")) var auditLog: String?
    @Option(help: help("allowed-origins")) var allowedOrigins: String?
    @Option(help: help("allowed-hosts")) var allowedHosts: String?
    @Option(help: help("namespace")) var namespace: String?
    @Option(help: help("name")) var name: String?
    @Option(help: help("resume-window")) var resumeWindow: String?
    @Option(help: help("websocket-compression")) var websocketCompression: String?
    @Option(help: help("demo")) var demo: String?
}

struct BrokerFlags: ParsableArguments {
    @Option(help: help("broker")) var broker: String?
    @Option(help: help("broker-user")) var brokerUser: String?
    @Option(help: help("broker-password-file")) var brokerPasswordFile: String?
    @Option(help: help("broker-ca-file")) var brokerCaFile: String?
    @Option(help: help("broker-certificate-file")) var brokerCertificateFile: String?
    @Option(help: help("broker-key-file")) var brokerKeyFile: String?
    @Option(help: help("broker-keepalive")) var brokerKeepalive: String?
    @Option(help: help("broker-check-interval")) var brokerCheckInterval: String?
    @Option(help: help("mqtt-version")) var mqttVersion: String?
    @Option(help: help("topic-dialect")) var topicDialect: String?
    @Option(help: help("broker-filters-per-packet")) var brokerFiltersPerPacket: String?
    @Option(help: help("broker-discovery")) var brokerDiscovery: String?
    @Option(help: help("broker-discovery-tls")) var brokerDiscoveryTls: String?
    @Option(help: help("embedded-broker-listen")) var embeddedBrokerListen: String?
    @Option(help: help("embedded-broker-announcement")) var embeddedBrokerAnnouncement: String?
}

struct ClusterFlags: ParsableArguments {
    @Option(help: help("state-directory")) var stateDirectory: String?
    @Option(help: help("cluster-key-file")) var clusterKeyFile: String?
    @Option(help: help("agent-check-interval")) var agentCheckInterval: String?
}

struct LogFlags: ParsableArguments {
    @Option(help: help("log-format")) var logFormat: String?
    @Option(help: help("log-level")) var logLevel: String?
    @Option(help: help("log-levels")) var logLevels: String?
    @Option(help: help("request-log")) var requestLog: String?
    @Option(help: help("slow-request")) var slowRequest: String?
}

struct TransportFlags: ParsableArguments {
    @Option(help: help("tls-certificate-file")) var tlsCertificateFile: String?
    @Option(help: help("tls-key-file")) var tlsKeyFile: String?
    @Option(help: help("tls-client-ca-file")) var tlsClientCaFile: String?
    @Option(help: help("tls-client-certificates")) var tlsClientCertificates: String?
    @Option(help: help("hsts-max-age")) var hstsMaxAge: String?
    @Option(help: help("plain-port")) var plainPort: String?
    @Option(help: help("trusted-proxies")) var trustedProxies: String?
    @Option(help: help("forwarded-header")) var forwardedHeader: String?
    @Option(help: help("proxy-protocol")) var proxyProtocol: String?
}

private func help(_ name: String) -> ArgumentHelp {
    let setting = GatewaySettings.groups.lazy.flatMap(\.settings).first { $0.name == name }
    return ArgumentHelp(setting?.summary ?? "", valueName: setting?.placeholder ?? name)
}
