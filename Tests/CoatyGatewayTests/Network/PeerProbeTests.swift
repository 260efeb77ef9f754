import Foundation
import TestSupport
import Testing

@testable import CoatyGateway

@Suite(.exclusive) struct PeerProbeTests {
    @Test func urlHasTheAddressTowardsTheBroker() {
        func url(_ host: String, isEncrypted: Bool = false, broker: String = "127.0.0.1") -> String? {
            PeerProbe.url(host: host, port: 8080, isEncrypted: isEncrypted, broker: broker)
        }
        #expect(url("192.0.2.1") == "http://192.0.2.1:8080/readyz")
        #expect(url("2001:db8::1", isEncrypted: true) == "https://[2001:db8::1]:8080/readyz")
        for any in ["0.0.0.0", "::"] { #expect(url(any) == "http://127.0.0.1:8080/readyz") }
        #expect(url("0.0.0.0", broker: "no host.invalid") == nil)
    }

    @Test func onlyARunningGatewayAnswers() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        let url = "http://127.0.0.1:\(gateway.port)/readyz"
        #expect(PeerProbe.isAnswered(url))
        broker.kill()
        try waitUntil("the gateway is not ready") { try gateway.request("GET", "/readyz").status == 503 }
        #expect(PeerProbe.isAnswered(url))
        gateway.signal(SIGSTOP)
        #expect(!PeerProbe.isAnswered(url))
        gateway.signal(SIGKILL)
        #expect(!PeerProbe.isAnswered(url))
    }
}
