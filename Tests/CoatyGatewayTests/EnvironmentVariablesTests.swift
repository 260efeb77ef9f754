import Foundation
import TestSupport
import Testing

@testable import Base
@testable import CoatyGateway
@testable import Edge

@Suite(.exclusive) struct EnvironmentVariablesTests {
    /// Variables that Kubernetes sets in a container for the services `coaty-gateway` and `coaty-gateway-metrics`.
    private static let kubernetes = [
        "COATY_GATEWAY_SERVICE_HOST": "10.0.0.1", "COATY_GATEWAY_SERVICE_PORT": "8080",
        "COATY_GATEWAY_SERVICE_PORT_HTTP": "8080", "COATY_GATEWAY_PORT": "tcp://10.0.0.1:8080",
        "COATY_GATEWAY_PORT_8080_TCP": "tcp://10.0.0.1:8080", "COATY_GATEWAY_PORT_8080_TCP_PROTO": "tcp",
        "COATY_GATEWAY_PORT_8080_TCP_PORT": "8080", "COATY_GATEWAY_PORT_8080_TCP_ADDR": "10.0.0.1",
        "COATY_GATEWAY_METRICS_SERVICE_HOST": "10.0.0.2", "COATY_GATEWAY_METRICS_PORT": "tcp://10.0.0.2:9090",
        "COATY_GATEWAY_METRICS_PORT_9090_TCP_ADDR": "10.0.0.2",
    ]

    private func error(_ environment: [String: String]) -> String? {
        let error = #expect(throws: InvalidConfiguration.self) {
            try GatewaySettings(flags: [:], environment: environment, file: nil)
        }
        return error?.description
    }

    @Test(
        arguments: [
            ("HOTS", "HOST"), ("TOPIC_DIALEKT", "TOPIC_DIALECT"), ("BROKER_KEEP_ALIVE", "BROKER_KEEPALIVE"),
            ("LOGLEVEL", "LOG_LEVEL"), ("CONFIG_FILE", "CONFIG"), ("EMBEDED_BROKER_LISTEN", "EMBEDDED_BROKER_LISTEN"),
            ("PORT_HTTP", "PORT"), ("BROKER_URL", "BROKER"), ("MQTT_BROKER", "BROKER"), ("SERVICE_NAME", "NAME"),
            ("OUTBOX_BYTES", "MAXIMUM_OUTBOX_BYTES"), ("OUTBOX_PUBLICATIONS", "MAXIMUM_OUTBOX_PUBLICATIONS"),
            ("RESUME_MEMORY", "MAXIMUM_REPLAY_MEMORY"), ("FOO", nil), ("", nil),
        ] as [(String, String?)]
    )
    func namesTheNearestSetting(_ name: String, _ nearest: String?) throws {
        let description = try #require(error(["COATY_GATEWAY_\(name)": "x"]))
        let hint = nearest.map { "did you mean COATY_GATEWAY_\($0)? " } ?? ""
        let end = "\(hint)coaty-gateway help serve and help limits list all"
        #expect(description == "COATY_GATEWAY_\(name): there is no such setting; \(end)")
    }

    @Test func ignoresKubernetesVariables() throws {
        let settings = try GatewaySettings(flags: [:], environment: Self.kubernetes, file: nil)
        #expect(settings.port == 8080 && settings.given.isEmpty)
        // A number is the gateway's port setting; other values are refused.
        #expect(try GatewaySettings(flags: [:], environment: ["COATY_GATEWAY_PORT": "81"], file: nil).port == 81)
        #expect(error(["COATY_GATEWAY_PORT": "tcp"])?.hasPrefix("COATY_GATEWAY_PORT: must be a whole number") == true)
        #expect(error(["COATY_GATEWAY_PORT_8080_SSH": "1"]) != nil)
    }

    @Test func acceptsForeignVariables() throws {
        let environment = ["COATY_BROKER": "x", "COATY_GATEWAY": "x"]
        #expect(throws: Never.self) { try GatewaySettings(flags: [:], environment: environment, file: nil) }
    }

    @Test func anUnknownKeyOfTheFileNamesTheNearestOne() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "settings-\(UUID().uuidString).yaml")
        try "host: h\nnamspace: n\n".write(to: url, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: url) }
        let error = #expect(throws: InvalidConfiguration.self) {
            try GatewaySettings(flags: [:], environment: [:], file: url.path)
        }
        #expect(error?.description == #"\#(url.path):2: unknown key "namspace"; did you mean namespace?"#)
    }

    @Test func theGatewayDoesNotStartWithAnUnknownVariable() throws {
        let gateway = try GatewayProcess(unready: [], environment: ["COATY_GATEWAY_HOTS": "127.0.0.1"])
        #expect(try gateway.waitForEnd() != 0)
        #expect(
            gateway.log.contains("COATY_GATEWAY_HOTS: there is no such setting; did you mean COATY_GATEWAY_HOST?")
        )
        let besideServices = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0"],
            environment: Self.kubernetes
        )
        #expect(try besideServices.request("GET", "/readyz").status == 200)
    }
}
