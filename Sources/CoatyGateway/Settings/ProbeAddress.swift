public import Base

extension GatewaySettings {
    /// The settings that the address of probes depends on.
    private static let probed: Set = [
        "host", "port", "plain-port", "tls-certificate-file", "tls-key-file", "tls-client-certificates",
        "proxy-protocol",
    ]

    /// Returns the base URL of the gateway for probes on the same machine: that of the plain port if there is one.
    ///
    /// Other settings may be invalid, and so may the file: a running gateway can have flags that the prober does not
    /// know, and keeps its settings if a changed file is not valid.
    ///
    /// - Throws: ``InvalidConfiguration`` if one of these settings is not valid, or probes can't use the address.
    public static func probeAddress(
        environment: [String: String],
        file: String?
    ) throws(InvalidConfiguration) -> String {
        var settings = GatewaySettings()
        let entries = file.flatMap { try? ConfigurationFile(path: $0).entries } ?? [:]
        for setting in all where probed.contains(setting.name) {
            try settings.apply(setting, [:], environment, entries)
        }
        return try settings.probeAddress
    }

    private var probeAddress: String {
        get throws(InvalidConfiguration) {
            if let plainPort = transport.plainPort {
                guard plainPort != 0 else { throw conflict(["plain-port"], "the port is not known if it is 0") }
                return "http://127.0.0.1:\(plainPort)"
            }
            guard port != 0 else { throw conflict(["port"], "the port is not known if it is 0") }
            guard !transport.usesProxyProtocol else { throw conflict(["proxy-protocol"], "probes need plain-port") }
            guard transport.requiresClientCertificate != true else {
                throw conflict(["tls-client-certificates"], "probes need plain-port")
            }
            let name =
                switch host {
                case "0.0.0.0": "127.0.0.1"
                case "::": "[::1]"
                default: host.contains(":") ? "[\(host)]" : host
                }
            return "\(transport.tls == nil ? "http" : "https")://\(name):\(port)"
        }
    }
}
