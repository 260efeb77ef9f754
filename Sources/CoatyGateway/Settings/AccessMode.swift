import Access
import Base
import CoatyMQTT
import Logging

/// The way in which the gateway controls access.
enum AccessMode: Sendable, Equatable {
    /// All clients have all permissions. Contains a reason to warn, if there is one.
    case open(warning: String?)
    /// One token with the role `admin`. It is created at start if none is configured.
    case token(String, isGenerated: Bool)
    /// The policy of the configuration file and, optionally, a further token with the role `admin`.
    case configured(AccessConfiguration, token: String?)

    /// The name of the token that is configured outside the configuration file or created at start.
    static let tokenName = "COATY_GATEWAY_TOKEN"

    /// Selects the mode for the settings.
    ///
    /// Without configured access, the gateway is open only if that makes nothing reachable that clients could not reach
    /// anyway: on loopback addresses for local clients, and elsewhere if the broker is embedded and only this gateway
    /// reaches it. Otherwise clients need a token.
    ///
    /// - Parameter generate: creates a token.
    /// - Throws: ``InvalidConfiguration`` if certificates have roles but the gateway does not request client
    ///   certificates.
    init(_ settings: GatewaySettings, generate: () -> String) throws(InvalidConfiguration) {
        let isLocal = settings.host == "localhost" || HostName.isLoopback(settings.host)
        let isBrokerPrivate =
            settings.broker == nil && !settings.isEmbeddedBrokerAnnounced
            && HostName.isLoopback(settings.embeddedBrokerListen.host)
        if let configuration = settings.accessConfiguration {
            guard configuration.certificates.isEmpty || settings.transport.clientAuthoritiesFile != nil else {
                throw InvalidConfiguration(description: "access.certificates: only with tls-client-ca-file")
            }
            self = .configured(configuration, token: settings.token)
        } else if let token = settings.token {
            self = .token(token, isGenerated: false)
        } else if settings.isAccessOpen {
            self = .open(warning: isLocal ? nil : "every client that reaches \(settings.host) has full access")
        } else if isLocal {
            self = .open(warning: nil)
        } else if isBrokerPrivate {
            self = .open(warning: "open access: every client that reaches \(settings.host) may use the embedded broker")
        } else {
            self = .token(generate(), isGenerated: true)
        }
    }

    /// Returns the policy.
    ///
    /// - Parameters:
    ///   - verifier: verifies the tokens of the configured identity provider.
    ///   - old: the policy to replace.
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

    /// The configuration for verifying the tokens of an identity provider; nil if none is configured.
    var jwt: JWTConfiguration? {
        if case .configured(let configuration, _) = self { configuration.jwt } else { nil }
    }
}

extension AccessConfiguration {
    /// Creates a configuration with one token of the role `admin`.
    init(admin token: String) {
        self.init(tokens: [Self.adminToken(token)], anonymous: [], roles: [:])
    }

    /// Returns a configuration with a further token of the role `admin`.
    func adding(admin token: String) -> AccessConfiguration {
        adding(Self.adminToken(token))
    }

    /// Returns a configuration with a token of some roles that has no name and that no client can present.
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
