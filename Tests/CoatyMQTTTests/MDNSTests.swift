import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CoatyMQTT

/// mDNS over real sockets, each test in a separate network.
@Suite(.exclusive, .enabled(if: NetworkNamespace.isAvailable, Comment(rawValue: NetworkNamespace.need)))
struct MDNSTests {
    /// Looks for brokers in the given network.
    private func browse(_ network: NetworkNamespace, for limit: Duration = .seconds(20)) throws -> [BrokerEndpoint] {
        try network.run {
            try MDNSBrowser(wakePipe: WakePipe()).browse(for: limit) { false }
        }
    }

    private func announce(_ network: NetworkNamespace, _ host: String, _ port: UInt16) throws -> MDNSAnnouncement {
        try network.run {
            let announcement = try MDNSAnnouncement(host: host, port: port)
            try announcement.start()
            return announcement
        }
    }

    /// Discovers a broker as the binding does.
    private func discover(_ network: NetworkNamespace) throws -> BrokerEndpoint? {
        try network.run {
            try BrokerDiscovery(limit: .milliseconds(300), wakePipe: WakePipe()) { false }.findBroker()
        }
    }

    @Test func findsBrokersUntilTheirAnnouncementEnds() throws {
        let network = try NetworkNamespace()
        let announcement = try announce(network, "0.0.0.0", 1883)
        let expected = BrokerEndpoint(service: "Coaty MQTT Broker", isIPv6: false, address: "127.0.0.1", port: 1883)
        let found = try browse(network)
        #expect(found == [expected])
        announcement.stop()
        #expect(try browse(network, for: .milliseconds(500)).isEmpty)
    }

    @Test func announcesOnlyTheAddressOfTheBroker() throws {
        let network = try NetworkNamespace()
        for command in [
            "link add v0 type veth peer name v1", "addr add 10.9.8.7/24 dev v0", "addr add 10.9.8.6/24 dev v0",
        ] {
            try network.ip(command)
        }
        try network.ip("link set v0 up")
        try network.ip("link set v1 up")
        let announcement = try announce(network, "10.9.8.6", 1884)
        defer { announcement.stop() }
        let found = try browse(network)
        #expect(found.map(\.description) == ["10.9.8.6:1884"])
    }

    @Test func twoBrokersHaveTwoNames() throws {
        let network = try NetworkNamespace()
        let first = try announce(network, "0.0.0.0", 1001)
        defer { first.stop() }
        let second = try announce(network, "0.0.0.0", 1002)
        defer { second.stop() }
        try waitUntil("both are found") {
            try Set(browse(network).map(\.service)) == ["Coaty MQTT Broker", "Coaty MQTT Broker #2"]
        }
    }

    @Test func aLinkLocalAddressHasItsScope() throws {
        let network = try NetworkNamespace()
        for command in [
            "link add v0 type veth peer name v1", "link set v0 addrgenmode none", "link set v1 up", "link set v0 up",
            "addr add fe80::7/64 dev v0 nodad",
        ] {
            try network.ip(command)
        }
        let port = try FreePort.tcp()
        let broker = try network.run { try BrokerProcess(extraConfiguration: ["listener \(port) fe80::7%v0"]) }
        defer { broker.stop() }
        let announcement = try announce(network, "::", port)
        defer { announcement.stop() }
        // ::1 is announced, too, but no broker listens there.
        let expected = BrokerEndpoint(service: MDNS.brokerName, isIPv6: true, address: "fe80::7%v0", port: port)
        try waitUntil("the broker is found") { (try? discover(network)) == expected }
        #expect(expected.description == "[fe80::7%v0]:\(port)")
    }

    @Test func cancelledSearchEndsAtOnce() throws {
        let network = try NetworkNamespace()
        let wakePipe = try WakePipe()
        let isCancelled = Atomic(false)
        let outcome = Mutex<Result<BrokerEndpoint?, any Error>?>(nil)
        try network.run {
            Thread.detachNewThread {
                let discovery = BrokerDiscovery(limit: .seconds(3600), wakePipe: wakePipe) {
                    isCancelled.load(ordering: .acquiring)
                }
                let found = Result { try discovery.findBroker() }
                outcome.withLock { $0 = found }
            }
        }
        // The hexadecimal form of port 5353.
        try waitUntil("it asks") { try network.udpSockets().contains(":14E9 ") }
        isCancelled.store(true, ordering: .releasing)
        wakePipe.wake()
        try waitUntil("it has ended") { outcome.withLock { $0 != nil } }
        let found = try outcome.withLock(\.self)?.get()
        #expect(found == nil)
    }

    @Test func discoveryFailureNamesTheReason() throws {
        let network = try NetworkNamespace()
        func reason() -> String {
            do { return "found \(String(describing: try discover(network)))" } catch { return "\(error)" }
        }
        #expect(reason() == "no broker has answered by mDNS as _coaty-mqtt._tcp within 0.3 seconds")
        let announcement = try announce(network, "0.0.0.0", 9)
        defer { announcement.stop() }
        try waitUntil("it is found") {
            reason() == "mDNS has found brokers, but none can be reached: 127.0.0.1:9"
        }
    }

    @Test(arguments: ["localhost", "127.0.0.1", "::1", "broker.example", "fe80::1%eth0", ""])
    func unreachableHostsAreNotAnnounced(_ host: String) {
        #expect(throws: MDNSError.self) { try MDNSAnnouncement(host: host, port: 1883) }
    }
}
