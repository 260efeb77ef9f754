import Base
import Edge

/// The settings of the port in addition to its address and number: TLS, HSTS, the plain port and proxies.
struct TransportSettings: Sendable, Equatable {
    var certificateFile: String?
    var keyFile: String?
    var clientAuthoritiesFile: String?
    var requiresClientCertificate: Bool?
    /// The max-age, in seconds; 0 sends no `Strict-Transport-Security`.
    var hstsMaxAge = 0
    /// A loopback port without TLS for probes and metrics; nil opens none.
    var plainPort: UInt16?
    /// The proxies in front of the gateway, and the way in which they send their clients' addresses.
    var addressing = ClientAddressing()
    var usesProxyProtocol = false

    /// The TLS files; nil if the gateway does not terminate TLS.
    var tls: TLSFiles? {
        guard let certificateFile, let keyFile else { return nil }
        return TLSFiles(
            certificate: certificateFile,
            key: keyFile,
            clientAuthorities: clientAuthoritiesFile,
            requiresClientCertificate: requiresClientCertificate ?? false
        )
    }
}

extension GatewaySettings {
    /// - Throws: ``InvalidConfiguration`` if settings contradict each other.
    func checkTransport() throws(InvalidConfiguration) {
        guard (transport.certificateFile == nil) == (transport.keyFile == nil) else {
            throw conflict(
                ["tls-certificate-file", "tls-key-file"],
                "tls-certificate-file and tls-key-file go together"
            )
        }
        let isEncrypted = transport.certificateFile != nil
        guard isEncrypted || transport.clientAuthoritiesFile == nil && transport.hstsMaxAge == 0 else {
            throw conflict(["tls-client-ca-file", "hsts-max-age"], "only with tls-certificate-file")
        }
        let addressing = transport.addressing
        guard !addressing.trustedProxies.isEmpty || addressing.field == .none && !transport.usesProxyProtocol else {
            throw conflict(["forwarded-header", "proxy-protocol"], "only with trusted-proxies")
        }
        guard transport.clientAuthoritiesFile != nil || transport.requiresClientCertificate == nil else {
            throw conflict(["tls-client-certificates"], "only with tls-client-ca-file")
        }
    }
}

extension GatewaySettings {
    static let transportSettings: [Setting] = [
        Setting(
            name: "tls-certificate-file",
            placeholder: "path",
            help: """
                PEM file of the gateway's certificate and those of intermediate authorities. With it, the port accepts only TLS \
                1.2 and 1.3. The gateway loads a changed file within seconds, and on SIGHUP (none).
                """,
            text: \.transport.certificateFile
        ),
        Setting(
            name: "tls-key-file",
            placeholder: "path",
            help: "PEM file of the private key of the gateway's certificate, without a password (none).",
            text: \.transport.keyFile
        ),
        Setting(
            name: "tls-client-ca-file",
            placeholder: "path",
            help:
                "PEM file of the authorities that sign client certificates; without it, the gateway requests none (none).",
            text: \.transport.clientAuthoritiesFile
        ),
        Setting(
            name: "tls-client-certificates",
            placeholder: "optional|required",
            help: "Whether a client must have a certificate of tls-client-ca-file to connect (optional)."
        ) { settings, value throws(SettingError) in
            guard ["optional", "required"].contains(value) else {
                throw SettingError(reason: "must be optional or required")
            }
            settings.transport.requiresClientCertificate = value == "required"
        },
        Setting(
            name: "hsts-max-age",
            placeholder: "seconds",
            help: """
                How long browsers use only https for the gateway's host name (Strict-Transport-Security); with 0 the field is not \
                sent (0).
                """,
            defaultText: "0"
        ) { settings, value throws(SettingError) in
            settings.transport.hstsMaxAge = try integer(value, in: 0...63_072_000)
        },
        Setting(
            name: "plain-port",
            placeholder: "port",
            help: "Port on 127.0.0.1 without TLS for /healthz, /readyz and /metrics; 0 uses a free port (none)."
        ) { settings, value throws(SettingError) in
            settings.transport.plainPort = try integer(value, in: 0...UInt16.max)
        },
        Setting(
            name: "trusted-proxies",
            placeholder: "addresses",
            help: """
                Addresses or ranges of reverse proxies, separated by commas, such as 10.0.0.0/8. The gateway trusts the client \
                addresses that these proxies send (none).
                """
        ) { settings, value throws(SettingError) in
            settings.transport.addressing.trustedProxies = try value.split(separator: ",").map {
                part throws(SettingError) in
                guard let range = AddressRange(part.filter { $0 != " " }) else {
                    throw SettingError(reason: "each entry must be an IP address, or one with the length of its prefix")
                }
                return range
            }
        },
        Setting(
            name: "forwarded-header",
            placeholder: "none|forwarded|x-forwarded-for",
            help: "Header field in which trusted proxies send the addresses of their clients (none).",
            defaultText: "none"
        ) { settings, value throws(SettingError) in
            guard let field = ClientAddressing.Field(rawValue: value) else {
                throw SettingError(reason: "must be none, forwarded or x-forwarded-for")
            }
            settings.transport.addressing.field = field
        },
        Setting(
            name: "proxy-protocol",
            placeholder: "true|false",
            help: """
                Whether every connection must come from a trusted proxy and begin with a header of the PROXY protocol, version 2; \
                the gateway closes others (false).
                """,
            defaultText: "false"
        ) { settings, value throws(SettingError) in
            settings.transport.usesProxyProtocol = try boolean(value)
        },
    ]
}
