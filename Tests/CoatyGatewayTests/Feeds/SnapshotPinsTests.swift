import Foundation
import Logging
import Testing
import TestSupport

@testable import Base
@testable import Coaty
@testable import CoatyTestSupport
@testable import Feeds
@testable import Network

/// Clients that do not read the snapshot of a subscription, while its objects are replaced.
@Suite(.exclusive, .closesOutboundQueues) struct SnapshotPinsTests {
    private static let size = 128 << 10
    private static let count = 16
    /// More small objects than are read ahead.
    private static let small = 400
    private let broker = TopicBroker()
    private let manager: CommunicationManager
    private let objects: ObjectRegistry
    private let hub: FeedHub
    private let transport = SteeredTransport()
    private let agent = CoatyUUID()

    init() async throws {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        hub = await FeedHub(manager, objects, options, resumeWindow: .zero)
        objects.start()
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
    }

    private func advertise(_ key: Int, _ number: Int, type: String = "t", padding: Int = 0) {
        let object = Made.object(key, number, padding: padding).replacingOccurrences(of: #""t""#, with: "\"\(type)\"")
        broker.publish(topic: "coaty/3/-/ADV:CoatyObject/\(agent)", payload: Array(#"{"object":\#(object)}"#.utf8))
    }

    /// Advertises some large objects.
    private func advertiseAll(_ number: Int) {
        for key in 0..<Self.count { advertise(key, number, padding: Self.size) }
    }

    /// Subscribes to the small objects, and reads only the first of them.
    private func subscribe(_ account: ClientAccount) async throws -> OutboundQueue {
        advertiseAll(0)
        for key in 100..<100 + Self.small { advertise(key, 0, type: "u") }
        try await untilTrue("all are known") { objects.content.listed.count >= Self.count + Self.small }
        let outbound = OutboundQueue(transport, of: account)
        transport.setRoom(2)
        let wanted = Observation.objects(.object(WireName("u")))
        _ = hub.subscribe(outbound.open(id: "a", wanted: wanted), to: wanted)
        try await untilTrue("the first is read") { transport.frames.count == 2 }
        return outbound
    }

    @Test func replacedObjectsAreChargedUntilTheSnapshotIsRead() async throws {
        let account = ClientAccount.single()
        let outbound = try await subscribe(account)
        #expect(account.memory.used < Self.size)
        advertiseAll(1)
        try await untilTrue("they are charged") { account.memory.used > (Self.count - 8) * Self.size }
        // The memory of the snapshot is bounded by its size. The workers must keep up, because the feed replaces events by
        // a gap otherwise.
        for number in 2...4 {
            try await settled()
            advertiseAll(number)
        }
        try await settled()
        #expect(account.memory.used < (Self.count + 6) * Self.size)
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("all are read") { transport.frames.count == 1 + Self.small }
        try await untilTrue("nothing is charged") { account.memory.used == 0 }
        await manager.stop()
    }

    @Test func snapshotThatKeepsTooMuchBecomesAGap() async throws {
        var limits = Limits()
        limits.memoryPerClient = 1 << 20
        let accounts = Accounts(limits, logger: Logger(label: "test"))
        let outbound = try await subscribe(accounts.account(ofAddress: "192.0.2.1"))
        advertiseAll(1)
        let refusal = Refusals.Reason(kind: .memory, exhaustion: .own)
        try await untilTrue("it is discarded") { accounts.refusals.all[refusal] == 1 }
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("the gap is delivered") { try transport.delivered.contains { $0.content == .gap(nil) } }
        #expect(transport.frames.count < 1 + Self.small)
        advertise(100, 1, type: "u")
        try await untilTrue("events go on") { try transport.delivered.last?.content == .change("changed") }
        await manager.stop()
    }
}
