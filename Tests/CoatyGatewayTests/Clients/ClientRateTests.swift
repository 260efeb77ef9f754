import TestSupport
import Testing

@testable import Base
@testable import Feeds

/// Connections of one client that was sent more bytes than its rate allows.
@Suite(.exclusive, .closesOutboundQueues) struct ClientRateTests {
    private let account = ClientAccount.single()
    private let transport = SteeredTransport()

    private var nothingWaits: Bool { account.line.withLock(\.isEmpty) }

    /// Returns outbound queues that have to wait, with events of a subscription each.
    private func queues(_ count: Int, events: Int, at rate: Rate) throws -> [OutboundQueue] {
        account.spend(.bytesOut, rate.burst + max(1, Int(rate.perSecond)), at: rate)
        return try (0..<count).map { index in
            let outbound = OutboundQueue(transport, of: account)
            outbound.limit(to: rate)
            let subscription = outbound.begun(id: "\(index)")
            for number in 0..<events { subscription.take(try Made.event(1, number)) }
            return outbound
        }
    }

    @Test func connectionsTakeTurns() throws {
        let (count, events) = (10, 10)
        let outbounds = try queues(count, events: events, at: Rate(perSecond: 50_000, burst: 5_000))
        #expect(transport.frames.isEmpty)
        try waitUntil("all is delivered") { transport.frames.count == count * events }
        let expected = (0..<events).flatMap { number in (0..<count).map { "\($0) event(\(number))" } }
        #expect(try transport.delivered.map(\.description) == expected)
        try waitUntil("the line is empty") { nothingWaits }
        withExtendedLifetime(outbounds) {}
    }

    @Test func connectionsShareOneTimer() throws {
        func end() throws -> Int64 {
            try account.line.withLock { line in
                guard case .pausing(_, let end) = line.phase else { throw Unexpected() }
                return end
            }
        }
        let rate = Rate(perSecond: 1.0 / 60, burst: 1)
        let first = try queues(1, events: 1, at: rate)
        let before = try end()
        let others = try queues(50, events: 1, at: rate)
        #expect(try end() == before)
        // Those that close leave the line.
        for outbound in others { outbound.close() }
        #expect(!nothingWaits)
        for outbound in first { outbound.close() }
        #expect(nothingWaits)
        #expect(transport.frames.isEmpty)
    }

    private struct Unexpected: Error {}

    @Test func newRateAppliesToWaitingConnections() throws {
        account.spend(.bytesOut, 30_000, at: Rate(perSecond: 1000, burst: 1))
        let outbounds = try queues(10, events: 2, at: Rate(perSecond: 1000, burst: 1))
        #expect(transport.frames.isEmpty)
        for outbound in outbounds { outbound.limit(to: Rate(perSecond: 1000, burst: 60_000)) }
        try waitUntil("all is delivered", within: 10) { transport.frames.count == 20 }
        // Without a rate, nothing waits.
        let others = try queues(10, events: 2, at: Rate(perSecond: 1.0 / 60, burst: 1))
        for outbound in others { outbound.limit(to: nil) }
        #expect(transport.frames.count == 40)
    }

    @Test func smallFramesShareOneWakeUp() {
        func pause(_ wait: Int64, _ perSecond: Double, _ burst: Int) -> Int64 {
            SendLine.pause(wait, at: Rate(perSecond: perSecond, burst: burst))
        }
        #expect(pause(1, 100_000, 100_000) == SendLine.pace)
        #expect(pause(5_000_000_000, 100_000, 100_000) == 5_000_000_000)
        // The bucket is full earlier.
        #expect(pause(1, 100_000, 1000) == 10_000_000)
        #expect(pause(1, 1_000_000, 1) == SendLine.minimumWait)
    }
}
