import Access
import Base
import Cluster
import Coaty
import CoatyMQTT
import Foundation
import Network

/// The settings of the gateway. Flags, environment variables and the configuration file use the names in ``all``; the
/// file also contains `routing` and `access`.
public struct GatewaySettings: Sendable {
    /// The address that the gateway listens on.
    public var host = "127.0.0.1"
    /// The port that the gateway listens on; 0 selects a free one.
    public var port: UInt16 = 8080
    /// The access configuration; only in the configuration file.
    var accessConfiguration: AccessConfiguration?
    /// Whether all clients have all permissions, wherever the gateway listens.
    var isAccessOpen = false
    /// A token of the role `admin`.
    var token: String?
    var auditLog = AuditLog.Destination.none
    /// TLS, and the port without it.
    var transport = TransportSettings()
    /// The web pages and host names that may be used.
    var browserPolicy = BrowserPolicy()
    /// The Coaty namespace that the gateway is in.
    public var namespace = "-"
    /// The name of the gateway's identity.
    public var name = "coaty-gateway"
    /// The settings of the log.
    public var log = LogSettings()
    /// The broker to use, or how to find it; nil starts one.
    var broker: MQTTClientOptions?
    var brokerUser: String?
    var brokerPasswordFile: String?
    var isBrokerDiscovered = false
    /// Whether a discovered broker must use TLS.
    var isDiscoveredBrokerEncrypted = false
    /// The keepalive interval, in seconds.
    var brokerKeepAlive = MQTTClientOptions.defaultKeepAlive
    /// The time without incoming bytes after which the broker must answer; zero for no checks.
    var brokerCheckInterval = MQTTClientOptions.defaultCheckInterval
    var mqttVersion = MQTTVersion.auto
    var brokerFiltersPerPacket = MQTTClientOptions.defaultFiltersPerPacket
    var topicDialect = TopicDialect.plain
    var tls = MQTTClientOptions.TLSOptions()
    var embeddedBrokerListen = EmbeddedBroker.Configuration().listen
    var isEmbeddedBrokerAnnounced = false
    /// The directory that stores changes made over REST across restarts; nil stores nothing.
    var stateDirectory: String?
    /// The file with the secret of the cluster; nil if the gateway is in none.
    var clusterKeyFile: String?
    /// The interval of the checks whether agents are still in the network; zero for no checks.
    var agentCheckInterval = Duration.seconds(60)
    /// The time for which the gateway continues to observe after the last client has left, so that clients can resume.
    var resumeWindow = Duration.seconds(60)
    /// The limits on the resources and work that clients can cause.
    var limits = Limits()
    /// Whether WebSocket clients may compress messages.
    var isWebSocketCompressed = false
    /// The contexts that the gateway routes; only in the configuration file, except for the context of the demo.
    var routing = RoutingConfiguration()
    /// Whether to start the demo agent.
    var isDemo = false

    /// The settings that were given explicitly, by name.
    var given: [String: Given] = [:]

    /// A value as text, and its place.
    struct Given: Sendable {
        let value: String
        /// Such as `gateway.yaml:3: port`.
        let place: String
    }

    /// Creates the default settings.
    public init() {}
}

extension GatewaySettings {
    /// The time from a signal to stop until the process has ended.
    public var stopTimeout: Duration { .seconds(limits.stopTimeout) }

    /// The limits of the gateway's own outbox.
    var outboxLimits: OutboxLimits {
        OutboxLimits(publications: limits.outboxPublications, bytes: limits[.outbox].total)
    }
}

/// One setting.
public struct Setting: Sendable {
    /// The name: `--name` as a flag, `COATY_GATEWAY_NAME` in the environment, `name:` in the file. For limits, see
    /// ``isLimit``.
    public let name: String
    /// Whether it is a limit: `--limit name=value` as a flag, and below `limits:` in the file.
    var isLimit = false
    /// The placeholder for the value in the help.
    public let placeholder: String
    /// The effect of the setting, with the default.
    public let help: String
    /// The first clause of ``help``, with the default.
    public var summary: String {
        var clause = ""
        for word in help.split(separator: " ") {
            // An example follows.
            if word == "such" { break }
            clause += clause.isEmpty ? word : " " + word
            if word.hasSuffix(";") || word.hasSuffix(".") { break }
        }
        while let last = clause.last, ".,;".contains(last) { clause.removeLast() }
        guard !clause.hasSuffix(")"), help.hasSuffix(")."), let value = help.lastIndex(of: "(") else {
            return clause + "."
        }
        return clause + " " + help[value...]
    }
    /// The value that has the same effect as no value; nil if there is none.
    var defaultText: String?
    /// Whether a reload applies a change; otherwise it needs a restart.
    var isReloadable = false
    let apply: @Sendable (inout GatewaySettings, String) throws(SettingError) -> Void

    /// The environment variable.
    public var environmentVariable: String { Self.environmentVariable(name) }

    static func environmentVariable(_ name: String) -> String {
        "COATY_GATEWAY_" + name.uppercased().replacing("-", with: "_")
    }
}

extension Setting {
    /// Creates a setting whose value is any non-empty text, such as the path of a file.
    init(
        name: String,
        placeholder: String,
        help: String,
        text path: any WritableKeyPath<GatewaySettings, String?> & Sendable
    ) {
        self.init(name: name, placeholder: placeholder, help: help) { settings, value throws(SettingError) in
            settings[keyPath: path] = try GatewaySettings.nonEmpty(value)
        }
    }
}

/// The reason why a value is not valid.
struct SettingError: Error {
    let reason: String
}

extension GatewaySettings {
    static let accessName = "access"
    private static let minimumTokenLength = 16

    /// A group of settings in the help and in the documents.
    public struct Group: Sendable {
        /// Such as `Broker`.
        public let title: String
        /// In the order of the help.
        public let settings: [Setting]
    }

    /// All settings except limits, in the order of the help.
    public static let groups = [
        Group(title: "Server", settings: serverSettings), Group(title: "Broker", settings: brokerSettings),
        Group(title: "State and cluster", settings: clusterSettings), Group(title: "Log", settings: logSettings),
        Group(title: "TLS and proxies", settings: transportSettings),
    ]
    /// The limits, in the order of their table.
    public static let limits = Limits.bounds.map(\.setting)
    /// All settings except limits.
    static let settings = groups.flatMap(\.settings)
    /// All settings and limits.
    static let all = settings + limits

    private static let serverSettings: [Setting] = [
        Setting(
            name: "host",
            placeholder: "address",
            help: "Address to listen on (127.0.0.1).",
            defaultText: "127.0.0.1"
        ) { settings, value throws(SettingError) in
            settings.host = try nonEmpty(value)
        },
        Setting(
            name: "port",
            placeholder: "port",
            help: "Port to listen on; 0 uses a free port (8080).",
            defaultText: "8080"
        ) { settings, value throws(SettingError) in
            settings.port = try integer(value, in: 0...UInt16.max)
        },
        Setting(
            name: accessName,
            placeholder: "open",
            help: """
                open allows every client to do everything, on any address. In the file, a mapping of tokens, roles and grants \
                (see docs/access.md).
                """,
            isReloadable: true
        ) { settings, value throws(SettingError) in
            guard value == "open" else { throw SettingError(reason: "must be open, or a mapping in the file") }
            settings.isAccessOpen = true
        },
        Setting(
            name: "token",
            placeholder: "token",
            help: """
                Token of at least \(minimumTokenLength) characters that allows a client to do everything. If other machines can \
                reach both the gateway and its broker, the gateway generates one if none is set.
                """,
            isReloadable: true
        ) { settings, value throws(SettingError) in
            guard value.utf8.count >= minimumTokenLength, value.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
                throw SettingError(reason: "must be at least \(minimumTokenLength) visible ASCII characters")
            }
            settings.token = value
        },
        Setting(
            name: "audit-log",
            placeholder: "path",
            help: """
                File for denials and administrative operations, as JSON lines; - is standard output. On SIGHUP the gateway opens it \
                again (none).
                """
        ) { settings, value throws(SettingError) in
            settings.auditLog = try nonEmpty(value) == "-" ? .standardOutput : .file(value)
        },
        Setting(
            name: "allowed-origins",
            placeholder: "origins",
            help: """
                Origins, separated by commas, whose web pages may use the gateway, such as https://app.example.com. The console \
                is always allowed (none).
                """,
            isReloadable: true
        ) { settings, value throws(SettingError) in
            settings.browserPolicy.allowedOrigins = try list(
                value,
                "scheme://host[:port] with http or https",
                WebOrigin.init
            )
        },
        Setting(
            name: "allowed-hosts",
            placeholder: "hosts",
            help: """
                Public host names, separated by commas, under which clients reach the gateway, such as the name of a reverse \
                proxy. Names that only a local network can have, and IP addresses, are always allowed (none).
                """,
            isReloadable: true
        ) { settings, value throws(SettingError) in
            settings.browserPolicy.allowedHosts = try list(value, "a host name without a port") { text in
                text.contains(":") ? nil : HostName(authority: text)
            }
        },
        Setting(name: "namespace", placeholder: "namespace", help: "Coaty namespace (-).", defaultText: "-") {
            settings,
            value throws(SettingError) in
            guard WireName.isPublishable(value) else {
                throw SettingError(reason: "must not be empty nor hold #, +, / or control characters")
            }
            settings.namespace = value
        },
        Setting(
            name: "name",
            placeholder: "name",
            help: "Name of the gateway's identity (coaty-gateway).",
            defaultText: "coaty-gateway"
        ) { settings, value throws(SettingError) in
            settings.name = value
        },
        Setting(
            name: "resume-window",
            placeholder: "seconds",
            help:
                "How long to stay subscribed after the last client of a stream has disconnected, so that it can resume (60).",
            defaultText: "60"
        ) { settings, value throws(SettingError) in
            settings.resumeWindow = .seconds(try integer(value, in: 0...86_400))
        },
        Setting(
            name: "websocket-compression",
            placeholder: "true|false",
            help: "Whether to accept permessage-deflate, which takes processor time for each message (false).",
            defaultText: "false"
        ) { settings, value throws(SettingError) in
            settings.isWebSocketCompressed = try boolean(value)
        },
        Setting(
            name: "demo",
            placeholder: "true|false",
            help: """
                Whether to start a demo agent with changing objects, an operation to call, and IO sources and actors that the \
                gateway routes (false).
                """,
            defaultText: "false"
        ) { settings, value throws(SettingError) in
            settings.isDemo = try boolean(value)
        },
    ]

    private static let brokerSettings: [Setting] = [
        Setting(
            name: "broker",
            placeholder: "url",
            help: """
                MQTT broker, mqtt[s]://[user[:password]@]host[:port], or several, separated by commas, to try in turn. Without it \
                the gateway starts an embedded broker.
                """
        ) { settings, value throws(SettingError) in
            do throws(MQTTOptionsError) {
                settings.broker = try MQTTClientOptions(url: value)
            } catch {
                throw SettingError(reason: error.description)
            }
        },
        Setting(
            name: "broker-user",
            placeholder: "name",
            help: "User name for the broker, instead of a user in its URL (none).",
            text: \.brokerUser
        ),
        Setting(
            name: "broker-password-file",
            placeholder: "path",
            help: "File whose first line is the user's password; the gateway reads it for each connection (none).",
            text: \.brokerPasswordFile
        ),
        Setting(
            name: "broker-ca-file",
            placeholder: "path",
            help: "PEM file of the authorities that sign the broker's certificate (the system's).",
            text: \.tls.caFile
        ),
        Setting(
            name: "broker-certificate-file",
            placeholder: "path",
            help: "PEM file of the client certificate for the broker.",
            text: \.tls.certificateFile
        ),
        Setting(
            name: "broker-key-file",
            placeholder: "path",
            help: "PEM file of the private key of the client certificate.",
            text: \.tls.keyFile
        ),
        Setting(
            name: "broker-keepalive",
            placeholder: "seconds",
            help:
                "Keepalive of the broker connection; without broker-check-interval, a frozen broker is noticed within twice that time (10).",
            defaultText: "10"
        ) { settings, value throws(SettingError) in
            settings.brokerKeepAlive = try integer(value, in: 5...UInt16.max)
        },
        Setting(
            name: "broker-check-interval",
            placeholder: "seconds",
            help: """
                Time without messages after which a broker must answer within the same time, or the gateway connects again; 0 \
                leaves this to broker-keepalive (3).
                """,
            defaultText: "3"
        ) { settings, value throws(SettingError) in
            settings.brokerCheckInterval = .seconds(try integer(value, in: 0...3600))
        },
        Setting(
            name: "mqtt-version",
            placeholder: "auto|5|3.1.1",
            help:
                "Version of MQTT towards the broker; auto is 5 if the broker supports it, and 3.1.1 otherwise (auto).",
            defaultText: "auto"
        ) { settings, value throws(SettingError) in
            guard let version = MQTTVersion(rawValue: value) else {
                throw SettingError(reason: "must be auto, 5 or 3.1.1")
            }
            settings.mqttVersion = version
        },
        Setting(
            name: "topic-dialect",
            placeholder: "plain|slashes",
            help: "Whether the broker delivers a dot as a slash in topics, as RabbitMQ does (plain).",
            defaultText: "plain"
        ) { settings, value throws(SettingError) in
            guard let dialect = TopicDialect(rawValue: value) else {
                throw SettingError(reason: "must be plain or slashes")
            }
            settings.topicDialect = dialect
        },
        Setting(
            name: "broker-filters-per-packet",
            placeholder: "number",
            help:
                "Maximum number of topic filters in a SUBSCRIBE packet; some brokers close the connection above 8 (8).",
            defaultText: "8"
        ) { settings, value throws(SettingError) in
            settings.brokerFiltersPerPacket = try integer(value, in: 1...1000)
        },
        Setting(
            name: "broker-discovery",
            placeholder: "true|false",
            help: """
                Whether to look for the broker by mDNS (_coaty-mqtt._tcp), instead of --broker. Any machine in the local network \
                can pose as a broker (false).
                """,
            defaultText: "false"
        ) { settings, value throws(SettingError) in
            settings.isBrokerDiscovered = try boolean(value)
        },
        Setting(
            name: "broker-discovery-tls",
            placeholder: "true|false",
            help: """
                Whether a discovered broker must use TLS, with a certificate for its address. Without such a certificate, no \
                machine can then pose as a broker (false).
                """,
            defaultText: "false"
        ) { settings, value throws(SettingError) in
            settings.isDiscoveredBrokerEncrypted = try boolean(value)
        },
        Setting(
            name: "embedded-broker-listen",
            placeholder: "address:port",
            help:
                "Where the gateway's own broker listens; port 0 takes a free one (127.0.0.1:1883, or the next free port)."
        ) { settings, value throws(SettingError) in
            settings.embeddedBrokerListen = try endpoint(value)
        },
        Setting(
            name: "embedded-broker-announcement",
            placeholder: "true|false",
            help: """
                Whether to announce the embedded broker by mDNS (_coaty-mqtt._tcp). Needs --embedded-broker-listen with an \
                address that other machines can reach (false).
                """,
            defaultText: "false"
        ) { settings, value throws(SettingError) in
            settings.isEmbeddedBrokerAnnounced = try boolean(value)
        },
    ]

    private static let clusterSettings: [Setting] = [
        Setting(
            name: "state-directory",
            placeholder: "path",
            help:
                "Directory for contexts and rules that are changed over REST; without it, a restart discards the changes.",
            text: \.stateDirectory
        ),
        Setting(
            name: "cluster-key-file",
            placeholder: "path",
            help: """
                File whose first line is a secret of at least \(ClusterKey.minimumLength) bytes. Gateways with the same secret, \
                namespace and broker serve the same clients (none).
                """,
            text: \.clusterKeyFile
        ),
        Setting(
            name: "agent-check-interval",
            placeholder: "seconds",
            help: """
                How often to look for agents that have left without notice, such as together with their broker node; 0 never \
                looks (60).
                """,
            defaultText: "60"
        ) { settings, value throws(SettingError) in
            settings.agentCheckInterval = .seconds(try integer(value, in: 0...86_400))
        },
    ]

    static func nonEmpty(_ value: String) throws(SettingError) -> String {
        guard !value.isEmpty else { throw SettingError(reason: "must not be empty") }
        return value
    }

    static func list<Element>(
        _ value: String,
        _ form: String,
        _ read: (String) -> Element?
    ) throws(SettingError) -> Set<Element> {
        var elements: Set<Element> = []
        if value.isEmpty { return elements }
        for part in value.split(separator: ",", omittingEmptySubsequences: false) {
            guard let element = read(part.trimmingCharacters(in: .whitespaces)) else {
                throw SettingError(reason: "each entry must be \(form); this one is not: \(part)")
            }
            elements.insert(element)
        }
        return elements
    }

    static func boolean(_ value: String) throws(SettingError) -> Bool {
        guard let value = Bool(value) else { throw SettingError(reason: "must be true or false") }
        return value
    }

    static func integer<Number: FixedWidthInteger>(
        _ value: String,
        in range: ClosedRange<Number>
    ) throws(SettingError) -> Number {
        guard let number = Number(value), range.contains(number) else {
            throw SettingError(reason: "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func endpoint(_ value: String) throws(SettingError) -> EmbeddedBroker.Address {
        guard let colon = value.lastIndex(of: ":") else { throw SettingError(reason: "must be address:port") }
        var host = value[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        let port: UInt16 = try integer(String(value[value.index(after: colon)...]), in: 0...UInt16.max)
        return EmbeddedBroker.Address(host: try nonEmpty(String(host)), port: port)
    }
}
