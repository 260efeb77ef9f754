import Coaty
import Foundation
import Glibc
import TestSupport
import Testing

@testable import CoatyMQTT

/// The addresses of a broker's name, as of a headless service, or of a name with a dead node.
@Suite(.exclusive) struct BrokerAddressTests {
    private static let name = "broker.example"

    private func agent(_ options: MQTTClientOptions) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(mqttClientOptions: options)
        )
    }

    private func options(
        _ port: UInt16,
        _ addresses: [String],
        tls: MQTTClientOptions.TLSOptions? = nil
    ) -> MQTTClientOptions {
        var options = MQTTClientOptions(host: Self.name, port: port, tls: tls)
        options.lookUp = { $0 == Self.name ? addresses : [] }
        return options
    }

    /// Starts an agent until it is online or has failed.
    ///
    /// - Returns: the reason of the failure; nil if it is online.
    private func outcome(_ options: MQTTClientOptions) async throws -> ConnectionError.Reason? {
        let agent = try agent(options)
        agent.start()
        try waitUntil("it is online or has failed") { agent.isOnline || agent.connectionError != nil }
        let reason = agent.connectionError?.reason
        await agent.stop()
        return reason
    }

    // MARK: - Names

    @Test func numericAddressIsNotLookedUp() {
        for host in ["127.0.0.1", "::1"] {
            let addresses = BrokerAddress.resolve(host, 1) { _ in
                Issue.record("looked up")
                return []
            }
            #expect(addresses == [BrokerAddress(host: host, port: 1)])
        }
    }

    @Test func everyAddressOfANameIsAnEntry() {
        let addresses = BrokerAddress.resolve("b", 1883) { _ in ["192.0.2.1", "2001:db8::1", "192.0.2.1", "192.0.2.2"] }
        #expect(addresses.map(\.numeric) == ["192.0.2.1", "2001:db8::1", "192.0.2.2"])
        #expect(addresses.map(\.description).last == "b:1883 (192.0.2.2)")
        #expect(BrokerAddress.resolve("b", 1883) { _ in ["192.0.2.1"] }.map(\.description) == ["b:1883"])
        #expect(BrokerAddress.resolve("b", 1883) { _ in [] }.isEmpty)
        let many = BrokerAddress.resolve("b", 1883) { _ in (0..<100).map { "192.0.2.\($0)" } }
        #expect(many.count == BrokerAddress.maximumAddresses)
    }

    @Test func systemResolvesNames() {
        #expect(!BrokerAddress.lookUp("localhost").isEmpty)
        #expect(BrokerAddress.lookUp("name.invalid").isEmpty)
    }

    @Test func oldRoundIsReplacedAndContinuesBehindItsLastAddress() {
        let start = ContinuousClock.now
        let addresses = ["1", "2", "3"].map { BrokerAddress(host: $0, port: 1) }
        var round = AddressRound()
        func isOver(after seconds: Int) -> Bool { round.isOver(now: start + .seconds(seconds)) }
        func next(_ count: Int) -> [BrokerAddress?] { (0..<count).map { _ in round.next() } }
        #expect(isOver(after: 0))
        round.begin(addresses, now: start)
        #expect(next(1) == [addresses[0]])
        #expect(!isOver(after: 29))
        #expect(isOver(after: 31))
        round.begin(addresses, now: start)
        #expect(next(3) == [addresses[1], addresses[2], addresses[0]])
        #expect(isOver(after: 0))
        round.begin(addresses, now: start)
        #expect(next(1) == [addresses[0]])
    }

    // MARK: - Connections

    @Test func nextAddressOfTheSameFamilyIsTriedAfterADeadOne() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try agent(options(broker.port, ["127.0.0.2", "127.0.0.3", "127.0.0.1"]))
        agent.start()
        try waitUntil("online") { agent.isOnline }
        await agent.stop()
    }

    /// A broker with a certificate for 127.0.0.1, and another for 127.0.0.2. Both require a client's certificate.
    private func makeBroker(
        _ certificates: Certificates,
        _ first: String,
        _ second: String
    ) throws -> BrokerProcess {
        func listener(_ name: String) -> [String] {
            let path = certificates.path(name)
            return [
                "cafile \(certificates.path("ca.pem"))", "certfile \(path).pem", "keyfile \(path).key",
                "require_certificate true",
            ]
        }
        return try BrokerProcess(
            extraConfiguration: listener(first) + ["listener %p 127.0.0.2"] + listener(second)
        )
    }

    private func tls(_ certificates: Certificates, _ authority: String = "ca.pem") -> MQTTClientOptions.TLSOptions {
        MQTTClientOptions.TLSOptions(
            caFile: certificates.path(authority),
            certificateFile: certificates.path("client.pem"),
            keyFile: certificates.path("client.key")
        )
    }

    @Test func certificateMustBeForTheNameAtEveryAddress() async throws {
        let certificates = try Certificates()
        try certificates.make("right", "subjectAltName=DNS:\(Self.name)")
        try certificates.make("wrong", "subjectAltName=DNS:other.example,IP:127.0.0.1")
        try certificates.make("address", "subjectAltName=IP:127.0.0.1,IP:127.0.0.2")
        try certificates.make("partial", "subjectAltName=DNS:b*r.example")
        try certificates.make("wildcard", "subjectAltName=DNS:*.example")
        try certificates.make("deep", "subjectAltName=DNS:*.\(Self.name),DNS:*.broker.lan,DNS:*.*,DNS:*")
        try certificates.make("foreign", "subjectAltName=DNS:\(Self.name)", authority: "other-ca")
        let cases: [(first: String, second: String, authority: String, reason: ConnectionError.Reason?)] = [
            // Only the second address decides, because the first is not accepted.
            ("wrong", "right", "ca.pem", nil), ("address", "wildcard", "ca.pem", nil),
            ("foreign", "right", "ca.pem", nil),
            ("wrong", "wrong", "ca.pem", .tlsWrongHost), ("address", "address", "ca.pem", .tlsWrongHost),
            ("partial", "deep", "ca.pem", .tlsWrongHost), ("foreign", "foreign", "ca.pem", .tlsUnknownAuthority),
            ("right", "right", "other-ca.pem", .tlsUnknownAuthority),
        ]
        for (first, second, authority, reason) in cases {
            let broker = try makeBroker(certificates, first, second)
            defer { broker.stop() }
            let agent = try agent(options(broker.port, ["127.0.0.1", "127.0.0.2"], tls: tls(certificates, authority)))
            agent.start()
            if let reason {
                let deadline = Date(timeIntervalSinceNow: 2)
                while Date() < deadline {
                    #expect(!agent.isOnline, "\(first), \(second)")
                    try await Task.sleep(for: .milliseconds(20))
                }
                #expect(agent.connectionError?.reason == reason, "\(first), \(second), \(authority)")
            } else {
                try waitUntil("online with \(first), \(second)") { agent.isOnline }
            }
            await agent.stop()
        }
    }

    /// libmosquitto checks numeric addresses.
    @Test func certificateForAnAddressIsAcceptedIfTheAddressIsConfigured() async throws {
        let certificates = try Certificates()
        try certificates.make("address", "subjectAltName=IP:127.0.0.1")
        let broker = try makeBroker(certificates, "address", "address")
        defer { broker.stop() }
        let agent = try agent(MQTTClientOptions(host: "127.0.0.1", port: broker.port, tls: tls(certificates)))
        agent.start()
        try waitUntil("online") { agent.isOnline }
        await agent.stop()
    }

    @Test func faultyFilesAreReportedForNames() async throws {
        let certificates = try Certificates()
        try "no certificate".write(toFile: certificates.path("text.pem"), atomically: true, encoding: .utf8)
        var wrongKey = tls(certificates)
        wrongKey.keyFile = certificates.path("server.key")
        var noKey = tls(certificates)
        noKey.keyFile = certificates.path("text.pem")
        for (tls, reason) in [
            (wrongKey, ConnectionError.Reason.tlsKeyMismatch), (noKey, .tlsFile),
            (tls(certificates, "text.pem"), .tlsFile),
        ] {
            #expect(try await outcome(options(1, ["127.0.0.1"], tls: tls)) == reason)
        }
    }

    @Test func handshakeNamesTheConfiguredHost() async throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 4) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        defer { close(listener) }
        try #require(isListening)
        let certificates = try Certificates()
        let port = UInt16(bigEndian: address.sin_port)
        let agent = try agent(options(port, ["127.0.0.1"], tls: tls(certificates)))
        agent.start()
        let connection = RawConnection(descriptor: accept(listener, nil, nil))
        let hello = String(decoding: try connection.read(), as: UTF8.self)
        #expect(hello.contains(Self.name))
        #expect(!hello.contains("127.0.0.1"))
        await agent.stop()
    }
}
