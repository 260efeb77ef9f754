import Coaty
import Logging
import TestSupport
import Testing

@testable import Base
@testable import Feeds

/// Objects of a snapshot that are delivered together.
@Suite(.exclusive, .closesOutboundQueues) struct ObjectBatchTests {
    private let transport = SteeredTransport()
    /// More than are read ahead.
    private static let objects = (0..<1000).map { Made.alive($0, $0) }
    private static let cursor = FeedCursor(epoch: 1, position: 7)

    private func begin(_ outbound: OutboundQueue, _ filter: String? = nil) throws {
        let options = try Made.options { $0.filter = try filter.map(Made.condition) }
        outbound.open(id: "a", options: options, wanted: .objects(.object(WireName("t"))))
            .begin(SubscriptionStart(snapshot: ObjectSnapshot(Self.objects, cursor: Self.cursor)))
    }

    /// The frames of a filtered snapshot are built from events.
    @Test func splicedFramesEqualThoseOfEvents() async throws {
        let filtered = SteeredTransport()
        try begin(OutboundQueue(transport))
        try begin(OutboundQueue(filtered), #"["n",["GreaterThanOrEqual",0]]"#)
        for transport in [transport, filtered] {
            try await untilTrue("all came") { transport.frames.count == 1 + Self.objects.count }
        }
        #expect(transport.frames == filtered.frames)
        let cursors = try transport.delivered.map(\.cursor)
        #expect(cursors.last == Self.cursor && cursors.dropLast().allSatisfy { $0 == nil })
    }

    @Test func batchesAreDeliveredInParts() async throws {
        var random = SeededGenerator(seed: 1)
        let account = ClientAccount.single()
        let outbound = OutboundQueue(transport, of: account)
        transport.setRoom(1)
        try begin(outbound)
        while transport.frames.count < 1 + Self.objects.count {
            try await settled()
            let delivered = outbound.statistics.delivered
            #expect(delivered == transport.frames.count - 1)
            #expect(outbound.statistics.subscriptions.map(\.queued) == [Self.objects.count - delivered])
            transport.setRoom(Int.random(in: 1..<100, using: &random))
            outbound.pump()
        }
        try await settled()
        #expect(try transport.delivered.dropFirst().map(\.number) == Self.objects.indices.map { $0 })
        #expect(outbound.statistics.queuedBytes == 0)
        try await untilTrue("nothing is charged") { account.memory.used == 0 }
    }

    @Test func objectsWithoutMemoryBecomeAGap() async throws {
        var limits = Limits()
        let limit = 1 << 20
        limits.memoryPerClient = limit
        let account = ClientAccount.single(limits)
        let outbound = OutboundQueue(transport, of: account)
        let charge = account.memory.chargeAnyway(limit)
        try begin(outbound)
        try await untilTrue("the gap came") { transport.frames.count > 1 }
        try await settled()
        var missing = 0
        for frame in try transport.delivered.dropFirst() {
            guard case .gap(let count?) = frame.content else {
                Issue.record("\(frame)")
                continue
            }
            missing += count
        }
        #expect(missing == Self.objects.count && outbound.statistics.dropped == missing)
        withExtendedLifetime(charge) {}
    }

    /// The rest of the last batch is not yet delivered while more events arrive than the queue has space for.
    @Test func eventsAfterTheLastBatchAreReplayed() async throws {
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 64 << 20))
        feed.update(.standing)
        let outbound = OutboundQueue(transport)
        transport.setRoom(2)
        feed.add(outbound.open(id: "a", options: Made.options { $0.buffer = 10 })) {
            ObjectSnapshot(Array(Self.objects.prefix(20)), cursor: $0())
        }
        try await untilTrue("the first is delivered") { transport.frames.count == 2 }
        for number in 1...30 { feed.deliver(try Made.event(1, number)) }
        try await settled()
        transport.setRoom(.max)
        outbound.pump()
        try await untilTrue("all came") { transport.frames.count >= 51 }
        #expect(try transport.delivered.compactMap(\.event) == Array(1...30))
    }
}
