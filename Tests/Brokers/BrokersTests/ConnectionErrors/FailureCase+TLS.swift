import Coaty
import CoatyMQTT
import TestSupport

extension FailureCase {
    /// Connections whose TLS handshake fails.
    static let tls = [
        FailureCase("broker's certificate of another authority", .tlsUnknownAuthority) {
            try secured("broker", authority: "other-ca.pem")
        },
        FailureCase("broker's certificate of no authority of the system", .tlsUnknownAuthority) {
            try secured("broker", authority: nil)
        },
        FailureCase("broker's certificate expired", .tlsExpired) { try secured("expired") },
        FailureCase("broker's certificate not yet valid", .tlsNotYetValid) { try secured("future") },
        FailureCase("broker's certificate for another host", .tlsWrongHost) { try secured("wrong-host") },
        FailureCase("private key does not match the certificate", .tlsKeyMismatch) {
            try secured("broker", client: ("client.pem", "other.key"))
        },
        FailureCase("file of the authorities does not exist", .tlsFile) {
            try secured("broker", authority: "missing.pem")
        },
        FailureCase("private key file does not exist", .tlsFile) {
            try secured("broker", client: ("client.pem", "missing.key"))
        },
        FailureCase("broker asks for a client certificate, none is configured", .tlsClientCertificate) {
            try secured("broker", demandsCertificate: true)
        },
        FailureCase("client certificate of another authority", .tlsClientCertificate) {
            try secured("broker", client: ("foreign-client.pem", "foreign-client.key"), demandsCertificate: true)
        },
        FailureCase("broker without TLS", .tlsNotOffered) {
            let broker = try BrokerProcess()
            return Setup(try tlsOptions(broker.port), broker)
        },
        FailureCase("TLS handshake not answered", .noAnswer) {
            let proxy = try await FaultProxy(before: 9, ["--frozen"])
            return Setup(try tlsOptions(proxy.port), proxy)
        },
        // The broker answers the CONNECT with a TLS alert, or closes the connection.
        FailureCase("broker with TLS, agent without", .closed) {
            var setup = try secured("broker")
            setup.options.tls = nil
            return setup
        },
    ]

    /// Starts a mosquitto with TLS, and returns options to connect to it.
    ///
    /// - Parameters:
    ///   - certificate: the name of the broker's certificate.
    ///   - listener: an address where the broker listens with TLS, instead of 127.0.0.1.
    ///   - authority: the file of the authority that the agent trusts; nil for those of the system.
    ///   - client: the files of the agent's certificate and private key.
    ///   - demandsCertificate: whether the broker requires a client certificate.
    static func secured(
        _ certificate: String,
        listener: String? = nil,
        authority: String? = "ca.pem",
        client: (certificate: String, key: String)? = nil,
        demandsCertificate: Bool = false
    ) throws -> Setup {
        let broker = try BrokerProcess(extraConfiguration: [
            listener.map { "listener %p \($0)" } ?? "",
            "cafile \(Bench.certificate("ca.pem"))",
            "certfile \(Bench.certificate("\(certificate).pem"))",
            "keyfile \(Bench.certificate("\(certificate).key"))",
            "require_certificate \(demandsCertificate)",
        ])
        return Setup(try tlsOptions(broker.port, authority: authority, client: client), broker)
    }

    private static func tlsOptions(
        _ port: UInt16,
        authority: String? = "ca.pem",
        client: (certificate: String, key: String)? = nil
    ) throws -> MQTTClientOptions {
        let tls = MQTTClientOptions.TLSOptions(
            caFile: try authority.map(Bench.certificate),
            certificateFile: try client.map { try Bench.certificate($0.certificate) },
            keyFile: try client.map { try Bench.certificate($0.key) }
        )
        return failingOptions(port) { $0.tls = tls }
    }
}
