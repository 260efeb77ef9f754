import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

@Suite(.exclusive) struct PacketProgressTests {
    @Test func onlyAnIncompletePacketCounts() {
        var progress = PacketProgress()
        let first = [1000, 1500].map { progress.bytes($0) }
        progress.complete()
        let second = [9000, 9001].map { progress.bytes($0) }
        #expect(first == [0, 500] && second == [0, 1])
    }

    /// libmosquitto would keep the whole packet. Without TLS, its bytes are discarded instead. On a busy machine,
    /// libmosquitto may read all of it at once; then the message is dropped.
    @Test func tooLongPacketEndsAConnectionWithTLS() async throws {
        let certificates = try Certificates()
        let broker = try BrokerProcess(certificates)
        defer { broker.stop() }
        var options = MQTTClientOptions(
            host: "127.0.0.1",
            port: broker.port,
            tls: .init(caFile: certificates.path("ca.pem"))
        )
        options.maximumPacketSize = 1 << 20
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(mqttClientOptions: options)
        )
        let stands = Atomic(false)
        let isLost = Atomic(false)
        let subscription = try agent.subscribe(
            rawTopic: "t",
            onStatus: { status in
                if status == .standing { stands.store(true, ordering: .releasing) }
                if status == .offline, stands.load(ordering: .acquiring) { isLost.store(true, ordering: .releasing) }
            },
            handler: { _ in Issue.record("the message is too long") }
        )
        agent.start()
        try waitUntil("it stands") { stands.load(ordering: .acquiring) }
        let other = try MQTTTestClient(port: broker.port, caFile: certificates.path("ca.pem"))
        try other.publish("t", [UInt8](repeating: 0, count: 50_000_000))
        try waitUntil("the connection is lost, or the message is dropped") {
            isLost.load(ordering: .acquiring) || agent.statistics.invalid > 0
        }
        subscription.cancel()
        await agent.stop()
    }
}
