import Foundation
import TestSupport
import Testing

/// A gateway that starts without its broker and reports why it is not ready.
@Suite(.exclusive) struct MissingBrokerTests {
    @Test func listensWithoutBrokerAndBecomesReadyWithIt() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        broker.kill()
        let url = "mqtt://127.0.0.1:\(broker.port)"
        let gateway = try GatewayProcess(["--broker", url])
        let http = "http://127.0.0.1:\(gateway.port)"
        let listening = "coaty-gateway listening on \(http), broker \(url) unreachable: connection refused, retrying\n"
        #expect(gateway.output == listening)
        try gateway.untilLogged(
            /warning broker: not connected to the broker .*reason=connection-refused/,
            "why it is not connected"
        )
        let readiness = try gateway.request("GET", "/readyz")
        #expect(readiness.status == 503 && readiness.text.contains(#""reason":"connection-refused""#))
        #expect(try gateway.request("GET", "/v1/status").text.contains(#""error":{"reason":"connection-refused""#))

        try broker.restart()
        try waitUntil("the gateway is ready") {
            gateway.output == listening + "coaty-gateway ready on \(http) (broker \(url))\n"
        }
        #expect(try gateway.request("GET", "/readyz").status == 200)
        #expect(try gateway.stop() == 0)
    }

    /// With TLS, libmosquitto takes the error of a refused connection. 2.0.21 (Debian 13) does so before it is known.
    @Test func refusedConnectionsWithTLSAreNotTakenForASilentBroker() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        broker.kill()
        let gateway = try GatewayProcess(["--broker", "mqtts://127.0.0.1:\(broker.port)"])
        let lines = gateway.log.matches(of: /not connected to the broker .*reason=([a-z-]+)/)
        let reasons = lines.map { String($0.output.1) }
        #expect(!reasons.isEmpty && Set(reasons).isSubset(of: ["connection-refused", "tls-not-offered"]), "\(reasons)")
    }

    @Test func brokerRefusalIsPrinted() throws {
        let broker = try BrokerProcess(
            files: ["passwords": "user:\(BrokerLossTests.passwordHash)\n"],
            extraConfiguration: ["allow_anonymous false", "password_file %d/passwords"]
        )
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://user:wrong@127.0.0.1:\(broker.port)"])
        let problem = "mqtt://127.0.0.1:\(broker.port) not connected: not authorized"
        #expect(gateway.output.hasSuffix(", broker \(problem), retrying\n"))
    }

    @Test func theTokenIsPrintedWithoutTheBroker() throws {
        let gateway = try GatewayProcess([
            "--host", "0.0.0.0", "--broker", "mqtt://127.0.0.1:\(try FreePort.tcp())",
        ])
        try waitUntil("the link is there") {
            gateway.output.contains("\nconsole http://localhost:\(gateway.port)/#token=")
        }
        #expect(gateway.output.hasPrefix("coaty-gateway listening on http://0.0.0.0:\(gateway.port), broker "))
    }

    @Test func gatewayIsReadyAtOnceWithItsBroker() throws {
        let scene = try Scene()
        let broker = "mqtt://127.0.0.1:\(scene.broker.port)"
        #expect(
            scene.gateway.output
                == "coaty-gateway ready on http://127.0.0.1:\(scene.gateway.port) (broker \(broker))\n"
        )
    }
}
