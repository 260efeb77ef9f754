import Coaty
import CoatyMQTT
import Testing

/// A broker that an agent can't connect to.
struct FailureCase: Sendable, CustomTestStringConvertible {
    /// A broker, and the options with which an agent tries to connect to it.
    struct Setup: Sendable {
        /// The options of the agent.
        var options: MQTTClientOptions
        /// The processes and sockets that make up the broker, kept until the end of the test.
        var broker: [any Sendable]

        init(_ options: MQTTClientOptions, _ broker: any Sendable...) {
            self.options = options
            self.broker = broker
        }
    }

    /// The description of the failure.
    let name: String
    /// The reason that the agent must report.
    let reason: ConnectionError.Reason
    /// Starts the broker.
    let setUp: @Sendable () async throws -> Setup

    /// A text that must not occur in any message.
    static let secret = "very-secret-word"

    var testDescription: String { name }

    init(_ name: String, _ reason: ConnectionError.Reason, _ setUp: @escaping @Sendable () async throws -> Setup) {
        self.name = name
        self.reason = reason
        self.setUp = setUp
    }

    /// All cases.
    static let all = network + login + tls
}

/// Returns options for a broker of 127.0.0.1, with short timeouts.
func failingOptions(_ port: UInt16, _ change: (inout MQTTClientOptions) -> Void = { _ in }) -> MQTTClientOptions {
    var options = MQTTClientOptions(host: "127.0.0.1", port: port)
    options.connectTimeout = .seconds(2)
    options.keepAlive = 5
    change(&options)
    return options
}
