import CoatyMQTT
import Logging

/// How the gateway finds out who may do what.
enum AccessMode: Sendable, Equatable {
    /// Everybody may do everything. A reason to warn, if there is one.
    case open(warning: String?)
    /// One token with the role `admin`. It is made at start if none is configured.
    case token(String, isGenerated: Bool)
    /// The policy of the configuration file, and perhaps a further token with the role `admin`.
    case configured(AccessConfiguration, token: String?)

    /// The name of the token that is configured by itself or made at start.
    static let tokenName = "COATY_GATEWAY_TOKEN"

    /// Decides by the settings.
    ///
    /// Without configured access the gateway is open only where no more can be reached through it than is there anyway: on
    /// loopback addresses for local clients, and elsewhere if the broker is embedded and only this gateway reaches it. Otherwise
    /// clients need a token.
    ///
    /// - Parameter generate: makes a token.
    /// - Throws: ``ConfigurationError`` if certificates have roles, and the gateway asks for none.
    init(_ settings: GatewaySettings, generate: () -> String) throws(ConfigurationError) {
        let isLocal = settings.host == "localhost" || HostName.isLoopback(settings.host)
        let isBrokerPrivate =
            settings.broker == nil && !settings.isEmbeddedBrokerAnnounced
            && HostName.isLoopback(settings.embeddedBrokerListen.host)
        if let configuration = settings.accessConfiguration {
            guard configuration.certificates.isEmpty || settings.transport.clientAuthoritiesFile != nil else {
                throw ConfigurationError(description: "access.certificates: only with tls-client-ca-file")
            }
            self = .configured(configuration, token: settings.token)
        } else if let token = settings.token {
            self = .token(token, isGenerated: false)
        } else if settings.isAccessOpen {
            self = .open(warning: isLocal ? nil : "everybody who reaches \(settings.host) may do everything")
        } else if isLocal {
            self = .open(warning: nil)
        } else if isBrokerPrivate {
            self = .open(warning: "open access: everybody who reaches \(settings.host) may use the embedded broker")
        } else {
            self = .token(generate(), isGenerated: true)
        }
    }

    /// Returns the policy.
    ///
    /// - Parameters:
    ///   - verifier: verifies the tokens of the configured identity provider.
    ///   - old: the policy that it will replace.
    func policy(
        _ settings: GatewaySettings,
        verifier: TokenVerifier? = nil,
        replacing old: Policy? = nil
    ) -> Policy {
        switch self {
        case .open: .open
        case .token(let token, _):
            Policy(AccessConfiguration(admin: token), dialect: settings.topicDialect, replacing: old)
        case .configured(let configuration, let token):
            Policy(
                token.map { configuration.adding(admin: $0) } ?? configuration,
                dialect: settings.topicDialect,
                maximumSteps: settings.limits.filterSteps,
                verifier: verifier,
                replacing: old
            )
        }
    }

    /// How tokens of an identity provider are verified; nil if none is configured.
    var jwt: JWTConfiguration? {
        if case .configured(let configuration, _) = self { configuration.jwt } else { nil }
    }
}

extension AccessConfiguration {
    /// A configuration with one token of the role `admin`.
    init(admin token: String) {
        self.init(tokens: [Self.adminToken(token)], anonymous: [], roles: [:])
    }

    /// Returns a configuration with a further token of the role `admin`.
    func adding(admin token: String) -> AccessConfiguration {
        adding(Self.adminToken(token))
    }

    /// Returns a configuration with a nameless token of some roles, which nobody can present.
    func adding(roles names: [String]) -> AccessConfiguration {
        adding(Token(name: "", digests: [], roles: names, attributes: Array("{}".utf8)))
    }

    private static func adminToken(_ token: String) -> Token {
        Token(
            name: AccessMode.tokenName,
            digests: [TokenDigest(of: token)],
            roles: [Self.admin],
            attributes: Array("{}".utf8)
        )
    }
}
