import Foundation
import TestSupport
import Testing

@testable import Cluster

@Suite(.exclusive) struct PeerProbeTests {
    @Test func urlHasTheAddressTowardsTheBroker() {
        func url(_ host: String, isEncrypted: Bool = false, broker: String = "127.0.0.1") -> String? {
            PeerProbe.url(host: host, port: 8080, isEncrypted: isEncrypted, broker: broker)
        }
        #expect(url("192.0.2.1") == "http://192.0.2.1:8080/readyz")
        #expect(url("2001:db8::1", isEncrypted: true) == "https://[2001:db8::1]:8080/readyz")
        for any in ["0.0.0.0", "::"] { #expect(url(any) == "http://127.0.0.1:8080/readyz") }
        #expect(url("0.0.0.0", broker: "no host.invalid") == nil)
        #expect(url("127.0.0.1") != nil && url("127.0.0.1", broker: "192.0.2.1") == nil)
    }

    @Test func onlyAReadyGatewayAnswers() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        let url = "http://127.0.0.1:\(gateway.port)/readyz"
        #expect(PeerProbe.isReady(url))
        gateway.signal(SIGSTOP)
        #expect(!PeerProbe.isReady(url))
        gateway.signal(SIGCONT)
        #expect(PeerProbe.isReady(url))
        broker.kill()
        try waitUntil("the gateway is not ready") { !PeerProbe.isReady(url) }
        gateway.signal(SIGKILL)
        #expect(!PeerProbe.isReady(url))
    }
}
