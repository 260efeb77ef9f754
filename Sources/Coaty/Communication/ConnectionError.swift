/// The reason why an agent is not connected to its broker.
public struct ConnectionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The cause. Raw values are stable: logs and the gateway's responses contain them.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// No server listens at the broker's address.
        case connectionRefused = "connection-refused"
        /// The broker's address did not answer in time.
        case timedOut = "timed-out"
        /// The broker's name can't be resolved.
        case hostNotFound = "host-not-found"
        /// The network can't be reached, or another error of the system.
        case network
        /// No broker is announced in the local network.
        case noBrokerFound = "no-broker-found"
        /// The broker refuses the user name or the password.
        case badCredentials = "bad-credentials"
        /// The password file can't be read or is not valid.
        case passwordFile = "password-file"
        /// The broker does not authorize the agent.
        case notAuthorized = "not-authorized"
        /// The broker does not support the version of the protocol.
        case protocolVersion = "protocol-version"
        /// The broker refuses the client identifier.
        case clientIdRejected = "client-id-rejected"
        /// The broker reports that it is not available.
        case brokerUnavailable = "broker-unavailable"
        /// The broker's certificate is signed by an authority that is not trusted.
        case tlsUnknownAuthority = "tls-unknown-authority"
        /// The broker's certificate has expired.
        case tlsExpired = "tls-expired"
        /// The broker's certificate is not yet valid.
        case tlsNotYetValid = "tls-not-yet-valid"
        /// The broker's certificate is for another host.
        case tlsWrongHost = "tls-wrong-host"
        /// The private key does not belong to the client certificate.
        case tlsKeyMismatch = "tls-key-mismatch"
        /// A certificate or key file can't be read.
        case tlsFile = "tls-file"
        /// The broker refuses the client certificate, or asks for one that is not configured.
        case tlsClientCertificate = "tls-client-certificate"
        /// The other end does not support TLS.
        case tlsNotOffered = "tls-not-offered"
        /// Another TLS error.
        case tls
        /// The broker stopped answering.
        case noAnswer = "no-answer"
        /// The broker closed the connection.
        case closed
        /// A protocol error.
        case `protocol`
    }

    /// The cause.
    public let reason: Reason
    /// The message for people: what is wrong, where, and what to do. Contains no credentials.
    public let message: String

    /// Creates an error.
    public init(_ reason: Reason, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
