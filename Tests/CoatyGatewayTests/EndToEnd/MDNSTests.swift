import Foundation
import TestSupport
import Testing

@testable import CoatyMQTT

/// Gateways that discover a broker and announce one by mDNS, each test in a separate network.
@Suite(.exclusive, .enabled(if: NetworkNamespace.isAvailable, Comment(rawValue: NetworkNamespace.need)))
struct MDNSTests {
    /// Returns whether a gateway in the given network is ready.
    private func isReady(_ gateway: GatewayProcess, _ network: NetworkNamespace) throws -> Bool {
        try network.run { try gateway.request("GET", "/readyz").status == 200 }
    }

    private func announcing(_ network: NetworkNamespace) throws -> GatewayProcess {
        try network.run {
            try GatewayProcess([
                "--embedded-broker-listen", "0.0.0.0:0", "--embedded-broker-announcement", "true",
            ])
        }
    }

    private func announcement(of broker: BrokerProcess, _ network: NetworkNamespace) throws -> MDNSAnnouncement {
        try network.run {
            let announcement = try MDNSAnnouncement(host: "0.0.0.0", port: broker.port)
            try announcement.start()
            return announcement
        }
    }

    @Test func gatewayFindsSuccessiveBrokersOfOtherGateways() throws {
        let network = try NetworkNamespace()
        let finding = try network.run { try GatewayProcess(["--broker-discovery", "true"]) }
        #expect(finding.output.contains(", broker mqtt://_coaty-mqtt._tcp.local "))
        try waitUntil("it says that there is none") {
            finding.log.contains("no broker has answered by mDNS as _coaty-mqtt._tcp within 5.0 seconds")
        }
        for _ in 0..<2 {
            let announcing = try announcing(network)
            try waitUntil("the gateway is ready") { try isReady(finding, network) }
            try finding.untilLogged("broker=mqtt://127.0.0.1:\(announcing.brokerPort)")
            let information = try network.run { try finding.request("GET", "/v1/info").text }
            #expect(
                information.contains(#""address":"mqtt://_coaty-mqtt._tcp.local","state":"online","embedded":false"#)
            )
            #expect(try announcing.stop() == 0)
            try waitUntil("the gateway is not ready") { try !isReady(finding, network) }
        }
        #expect(try finding.stop() == 0)
    }

    /// Any host in the network can announce a broker.
    @Test func onlyBrokersCertifiedByTheAuthorityAreUsed() throws {
        let network = try NetworkNamespace()
        let certificates = try Certificates()
        let impostor = try announcing(network)
        let finding = try network.run {
            try GatewayProcess([
                "--broker-discovery", "true", "--broker-discovery-tls", "true", "--broker-ca-file",
                certificates.path("ca.pem"),
            ])
        }
        #expect(finding.output.contains(", broker mqtts://_coaty-mqtt._tcp.local "))
        try waitUntil("it says why") { finding.log.contains("reason=tls-not-offered") }
        #expect(try !isReady(finding, network))
        #expect(try impostor.stop() == 0)
        let broker = try network.run { try BrokerProcess(certificates) }
        defer { broker.stop() }
        let announcement = try announcement(of: broker, network)
        defer { announcement.stop() }
        try waitUntil("the gateway is ready") { try isReady(finding, network) }
        try finding.untilLogged("broker=mqtts://127.0.0.1:\(broker.port)")
    }

    @Test func aDiscoveredBrokerGetsTheCredentials() throws {
        let network = try NetworkNamespace()
        let broker = try network.run {
            try BrokerProcess(
                files: ["passwords": "user:\(BrokerLossTests.passwordHash)\n"],
                extraConfiguration: ["allow_anonymous false", "password_file %d/passwords"]
            )
        }
        defer { broker.stop() }
        let announcement = try announcement(of: broker, network)
        defer { announcement.stop() }
        let file = broker.directory + "/password"
        try "wrong".write(toFile: file, atomically: true, encoding: .utf8)
        let finding = try network.run {
            try GatewayProcess([
                "--broker-discovery", "true", "--broker-user", "user", "--broker-password-file", file,
            ])
        }
        try waitUntil("the password is wrong") { finding.log.contains("reason=not-authorized") }
        try "s@cret".write(toFile: file, atomically: true, encoding: .utf8)
        try waitUntil("the gateway is ready") { try isReady(finding, network) }
    }

    /// An independent mDNS implementation, python3-zeroconf of Debian.
    private static let zeroconf = """
        import socket, sys, time
        from zeroconf import ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf
        KIND = "_coaty-mqtt._tcp.local."

        class Listener(ServiceListener):
            def add_service(self, zeroconf, kind, name):
                info = zeroconf.get_service_info(kind, name)
                if info: print("add", name, info.parsed_addresses(), info.port, info.properties, flush=True)
            def update_service(self, zeroconf, kind, name): pass
            def remove_service(self, zeroconf, kind, name): print("remove", name, flush=True)

        zeroconf = Zeroconf(interfaces=["127.0.0.1"])
        if len(sys.argv) > 1:
            # As the broker of coaty-js has it: a host name without domain, and addresses of other networks too.
            zeroconf.register_service(ServiceInfo(
                KIND, "Coaty MQTT Broker." + KIND, int(sys.argv[1]), properties={"ws-port": "9883"}, server="workstation.",
                addresses=[socket.inet_aton(a) for a in ("192.0.2.1", "127.0.0.1")]))
            print("announced", flush=True)
        else:
            ServiceBrowser(zeroconf, KIND, Listener())
            print("browsing", flush=True)
        time.sleep(600)
        """

    private func peer(_ network: NetworkNamespace, _ arguments: [String] = []) throws -> ChildProcess {
        let python = try TestProgram.pythonWithZeroconf.path()
        return try network.run { try ChildProcess(python, ["-c", Self.zeroconf] + arguments) }
    }

    @Test func peersSeeTheAnnouncementUntilStop() throws {
        let network = try NetworkNamespace()
        let peer = try peer(network)
        try waitUntil("it browses") { peer.output.contains("browsing") }
        let announcing = try announcing(network)
        let name = "Coaty MQTT Broker._coaty-mqtt._tcp.local."
        try waitUntil("it comes") {
            peer.output.contains("add \(name) ['127.0.0.1'] \(announcing.brokerPort) {}")
        }
        #expect(!peer.output.contains("remove"))
        try announcing.stop()
        // The name is removed long before its time to live of 75 minutes has expired.
        try waitUntil("it goes") { peer.output.contains("remove \(name)") }
    }

    @Test func findsBrokersAnnouncedByOthers() throws {
        let network = try NetworkNamespace()
        let broker = try network.run { try BrokerProcess() }
        defer { broker.stop() }
        let peer = try peer(network, ["\(broker.port)"])
        try waitUntil("it announces") { peer.output.contains("announced") }
        let finding = try network.run { try GatewayProcess(["--broker-discovery", "true"]) }
        try waitUntil("the gateway is ready") { try isReady(finding, network) }
        try finding.untilLogged("broker=mqtt://127.0.0.1:\(broker.port)")
    }
}
