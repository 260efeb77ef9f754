import Access
public import Base
import Coaty
import CoatyMQTT
import Foundation
import Network

extension GatewaySettings {
    /// Combines the settings: a flag overrides the environment, which overrides the file, which overrides the default.
    ///
    /// - Parameters:
    ///   - flags: values by the names of settings and limits.
    ///   - environment: the process's environment.
    ///   - file: the path of a YAML file, or nil.
    /// - Throws: ``InvalidConfiguration``
    public init(
        flags: [String: String],
        environment: [String: String],
        file: String?
    ) throws(InvalidConfiguration) {
        self.init()
        let environment = try EnvironmentVariables.settings(in: environment)
        let file = try file.map { path throws(InvalidConfiguration) in try ConfigurationFile(path: path) }
        let entries = file?.entries ?? [:]
        routing = file?.routing ?? .init()
        accessConfiguration = file?.access
        for setting in Self.all { try apply(setting, flags, environment, entries) }
        guard limits.clientMemory >= limits.minimumClientMemory else {
            throw conflict(
                ["maximum-memory", "maximum-outbox-bytes", "maximum-replay-memory"],
                "maximum-memory is too small for maximum-outbox-bytes and maximum-replay-memory"
            )
        }
        guard limits.drainDelay <= limits.stopTimeout - Limits.minimumStopTime else {
            throw conflict(
                ["drain-delay", "stop-timeout"],
                "stop-timeout must be at least \(Limits.minimumStopTime) seconds longer than drain-delay"
            )
        }
        guard !isAccessOpen || accessConfiguration == nil && token == nil else {
            throw conflict([Self.accessName], "open excludes tokens and roles")
        }
        try checkTransport()
        if isDemo { try addDemoContext() }
        try useMDNS()
        if tls != .init() {
            guard broker?.tls != nil else {
                throw conflict(
                    ["broker-ca-file", "broker-certificate-file", "broker-key-file"],
                    "only with a broker whose URL begins with mqtts://, or with broker-discovery-tls"
                )
            }
            broker?.tls = tls
        }
        try useBrokerUser()
        broker?.keepAlive = brokerKeepAlive
        broker?.connectTimeout = .seconds(limits.brokerConnectTimeout)
        broker?.filtersPerPacket = brokerFiltersPerPacket
        broker?.topicDialect = topicDialect
        for (name, file) in [
            ("broker-ca-file", tls.caFile), ("broker-certificate-file", tls.certificateFile),
            ("broker-key-file", tls.keyFile), ("broker-password-file", brokerPasswordFile),
        ] {
            guard let file, access(file, R_OK) != 0 else { continue }
            throw conflict([name], "\(file) cannot be read")
        }
        guard (tls.certificateFile == nil) == (tls.keyFile == nil) else {
            throw conflict(
                ["broker-certificate-file", "broker-key-file"],
                "broker-certificate-file and broker-key-file go together"
            )
        }
    }

    /// Returns the error of settings that contradict each other.
    ///
    /// - Parameter names: the settings. The error contains the place of the first one that was given.
    func conflict(_ names: [String], _ reason: String) -> InvalidConfiguration {
        let place = names.lazy.compactMap { given[$0]?.place }.first ?? names.first ?? ""
        return InvalidConfiguration(description: "\(place): \(reason)")
    }

    private mutating func useBrokerUser() throws(InvalidConfiguration) {
        guard brokerUser != nil || brokerPasswordFile != nil else { return }
        guard let brokerUser else {
            throw conflict(["broker-password-file"], "only with broker-user")
        }
        guard broker != nil else {
            throw conflict(["broker-user"], "only with broker or broker-discovery")
        }
        guard broker?.username == nil, broker?.password == nil else {
            throw conflict(["broker-user", "broker"], "broker-user and a user in the URL of broker exclude each other")
        }
        broker?.username = brokerUser
        broker?.passwordFile = brokerPasswordFile
    }

    private mutating func useMDNS() throws(InvalidConfiguration) {
        guard isBrokerDiscovered || !isDiscoveredBrokerEncrypted else {
            throw conflict(["broker-discovery-tls"], "only with broker-discovery")
        }
        if isBrokerDiscovered {
            guard broker == nil else {
                throw conflict(["broker-discovery", "broker"], "broker and broker-discovery exclude each other")
            }
            broker = MQTTClientOptions(
                tls: isDiscoveredBrokerEncrypted ? MQTTClientOptions.TLSOptions() : nil,
                shouldTryMDNSDiscovery: true
            )
        }
        guard isEmbeddedBrokerAnnounced else { return }
        guard broker == nil else {
            throw conflict(
                ["embedded-broker-announcement"],
                "not with broker or broker-discovery, which leave no embedded broker"
            )
        }
        do throws(MDNSError) {
            _ = try MDNSAnnouncement(host: embeddedBrokerListen.host, port: embeddedBrokerListen.port)
        } catch {
            throw conflict(["embedded-broker-listen", "embedded-broker-announcement"], "\(error)")
        }
    }

    /// Applies a setting from the first of the sources that has it.
    mutating func apply(
        _ setting: Setting,
        _ flags: [String: String],
        _ environment: [String: String],
        _ entries: [String: ConfigurationFile.Entry]
    ) throws(InvalidConfiguration) {
        let name = setting.name
        if let value = flags[name] {
            try apply(setting, value, from: setting.isLimit ? "--limit \(name)" : "--\(name)")
        } else if let value = environment[setting.environmentVariable] {
            try apply(setting, value, from: setting.environmentVariable)
        } else if let entry = entries[name] {
            try apply(setting, entry.value, from: "\(entry.place): \(name)")
        }
    }

    private mutating func apply(_ setting: Setting, _ value: String, from place: String) throws(InvalidConfiguration) {
        do throws(SettingError) {
            try setting.apply(&self, value)
            given[setting.name] = Given(value: value, place: place)
        } catch {
            throw InvalidConfiguration(description: "\(place): \(error.reason)")
        }
    }
}

/// A YAML file with a mapping of setting names to scalars, of `limits` to a mapping of limit names to numbers, of
/// `routing` to the routed contexts, and of `access` to the access configuration.
struct ConfigurationFile {
    struct Entry {
        let value: String
        let place: String
    }

    /// The settings and limits, by name.
    private(set) var entries: [String: Entry] = [:]
    private(set) var routing = RoutingConfiguration()
    private(set) var access: AccessConfiguration?

    private static let routingKey = "routing"
    private static let limitsKey = "limits"

    init(path: String) throws(InvalidConfiguration) {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw InvalidConfiguration(description: "\(path): cannot be read")
        }
        let root: YAMLNode?
        do {
            root = try YAMLNode.parse(text)
        } catch {
            throw InvalidConfiguration(description: "\(path):\(error.line): \(error.reason)")
        }
        guard let root, root.text != "" else { return }
        for (key, value) in try Self.mapping(root, path) {
            if key.text == Self.limitsKey {
                // Nothing is below it, as in the default file.
                if value.text == "" { continue }
                for (key, value) in try Self.mapping(value, path, "limits: ") {
                    try add(key, value, to: GatewaySettings.limits, in: path, unknown: Self.unknownLimit)
                }
                continue
            }
            if key.text == Self.routingKey {
                routing = try Self.read(value, Self.routingKey, path: path, RoutingConfiguration.init)
                continue
            }
            if key.text == GatewaySettings.accessName, value.text == nil {
                access = try Self.read(value, GatewaySettings.accessName, path: path, AccessConfiguration.init)
                continue
            }
            try add(key, value, to: GatewaySettings.settings, in: path, unknown: Self.unknownSetting)
        }
    }

    /// Adds a setting or a limit.
    ///
    /// - Parameter unknown: returns what is wrong with a name that is not among the settings.
    private mutating func add(
        _ key: YAMLNode,
        _ value: YAMLNode,
        to settings: [Setting],
        in path: String,
        unknown: (String) -> String
    ) throws(InvalidConfiguration) {
        let (name, place) = (key.text ?? "", "\(path):\(key.line)")
        guard settings.contains(where: { $0.name == name }) else {
            throw InvalidConfiguration(description: "\(place): \(unknown(name))")
        }
        guard let text = value.text else {
            throw InvalidConfiguration(description: "\(place): \(name) must have a single value")
        }
        entries[name] = Entry(value: text, place: place)
    }

    private static func unknownSetting(_ name: String) -> String {
        let limits = GatewaySettings.limits.map(\.name)
        if limits.contains(name) { return "\(name) is a limit: write \(name) below limits" }
        let known = GatewaySettings.settings.map(\.name) + [routingKey, limitsKey]
        let former = GatewaySettings.limit(formerly: name)
        if former == nil, let nearest = NearestName.of(name, among: known) { return unknown(name, nearest) }
        guard let limit = former ?? NearestName.of(name, among: limits) else { return unknown(name, nil) }
        return "\(name) is no setting: write \(limit) below limits"
    }

    private static func unknownLimit(_ name: String) -> String {
        if let limit = GatewaySettings.limit(formerly: name) { return "\(name) is called \(limit)" }
        if GatewaySettings.settings.contains(where: { $0.name == name }) {
            return "\(name) is no limit: write it at the top level"
        }
        return unknown(name, NearestName.of(name, among: GatewaySettings.limits.map(\.name)))
    }

    private static func unknown(_ name: String, _ nearest: String?) -> String {
        "unknown key \"\(name)\"" + (nearest.map { "; did you mean \($0)?" } ?? "")
    }

    private static func mapping(
        _ node: YAMLNode,
        _ path: String,
        _ name: String = ""
    ) throws(InvalidConfiguration) -> [(key: YAMLNode, value: YAMLNode)] {
        guard let mapping = node.mapping else {
            throw InvalidConfiguration(
                description: "\(path):\(node.line): \(name)must be a mapping of names to values"
            )
        }
        return mapping
    }

    /// Reads a nested value.
    ///
    /// - Throws: ``InvalidConfiguration`` with the line.
    private static func read<Value>(
        _ node: YAMLNode,
        _ name: String,
        path: String,
        _ parse: (JSONView) throws(PayloadError) -> Value
    ) throws(InvalidConfiguration) -> Value {
        func error(_ line: Int, _ pointer: String, _ reason: String) -> InvalidConfiguration {
            InvalidConfiguration(description: "\(path):\(line): \(name)\(pointer): \(reason)")
        }
        do {
            let json = try YAMLValue(node).json
            return try parse(JSONDocument(encoding: json).root)
        } catch let wrong as YAMLValueError {
            throw error(wrong.line, wrong.pointer, wrong.reason)
        } catch PayloadError.invalid(let pointer, let reason) {
            throw error(YAMLValue.line(of: pointer, in: node), pointer, reason)
        } catch let wrong {
            throw error(node.line, "", "\(wrong)")
        }
    }
}
