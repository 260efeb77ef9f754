import Coaty
import CoatyMQTT
import TestSupport

extension FailureCase {
    /// Brokers that refuse the CONNECT.
    static let login = [
        FailureCase("RabbitMQ, wrong password", .badCredentials) {
            Setup(failingOptions(try Bench.port(ofNode: 1), wrongPassword))
        },
        // mosquitto answers a wrong password with the return code "not authorized".
        FailureCase("mosquitto, wrong password", .notAuthorized) {
            let broker = try closedBroker()
            return Setup(failingOptions(broker.port, wrongPassword), broker)
        },
        FailureCase("mosquitto, no user name", .notAuthorized) {
            let broker = try closedBroker()
            return Setup(failingOptions(broker.port), broker)
        },
        refusal(1, "unacceptable protocol version", .protocolVersion),
        refusal(2, "client identifier rejected", .clientIdRejected),
        refusal(3, "server unavailable", .brokerUnavailable),
        refusal(4, "bad user name or password", .badCredentials),
        refusal(5, "not authorized", .notAuthorized),
    ]

    private static func wrongPassword(_ options: inout MQTTClientOptions) {
        options.username = "coaty"
        options.password = secret
    }

    /// Starts a mosquitto that accepts no client.
    private static func closedBroker() throws -> BrokerProcess {
        try BrokerProcess(
            files: ["passwords": ""],
            extraConfiguration: ["allow_anonymous false", "password_file %d/passwords"]
        )
    }

    private static func refusal(_ code: Int, _ name: String, _ reason: ConnectionError.Reason) -> FailureCase {
        FailureCase("CONNACK \(code), \(name)", reason) {
            let broker = try BrokerProcess()
            let proxy = try await FaultProxy(before: broker.port, ["--connack", "\(code)"])
            return Setup(failingOptions(proxy.port), broker, proxy)
        }
    }
}
