import Coaty
import Foundation
import Testing
import TestSupport

@testable import Base
@testable import CoatyTestSupport
@testable import Network

/// Leases of IO nodes, with a clock that the test controls and an in-memory broker.
@Suite(.exclusive) struct IoNodeRegistryTests {
    private let clock = SteeredClock()
    private let broker = TopicBroker()
    private let registry: IoNodeRegistry

    init() {
        registry = IoNodeRegistry(
            options: CommunicationOptions { [broker] _ in TopicBinding(broker: broker) },
            name: "gateway",
            limit: 2,
            clock: clock,
            startTimer: { [clock] in SleepingTimer(clock, $0, $1) },
            logger: .init(label: "test")
        )
    }

    private func node(_ members: String = "") throws -> LeasedIoNode {
        let body = #"{"contextName":"c","ioSources":[{"name":"s","valueType":"t"}]\#(members)}"#
        return try registry.node(IoNodeRequest(Payload(Array(body.utf8)), Limits()))
    }

    /// Longer than the total time for which tests block a thread of the pool.
    private static let patience = Duration.seconds(120)

    private func until(_ what: String, _ condition: @Sendable () -> Bool) async throws {
        let deadline = ContinuousClock.now + Self.patience
        while !condition() {
            try #require(.now < deadline, "in vain: \(what)")
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private func register(_ node: LeasedIoNode) async throws -> Lease {
        let others = clock.sleepers
        let lease = try await registry.register(node, owner: .anonymous)
        // The timer of the lease is running; the timer of joining is not.
        try await until("the lease is timed") { [clock] in clock.sleepers == others + 1 }
        return lease
    }

    /// Registers a node with an id as soon as the id is free.
    private func registerAgain(_ id: CoatyUUID) async throws {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            do {
                _ = try await registry.register(node(#","objectId":"\#(id)""#), owner: .anonymous)
                return
            } catch IoNodeRegistry.Refusal.conflict {
                try #require(.now < deadline, "in vain: \(id) is free")
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    private var deadvertised: [String] {
        broker.published.filter { $0.topic.contains("/DAD/") }.map { String(decoding: $0.payload, as: UTF8.self) }
    }

    @Test func nodeIsRemovedWhenItsLeaseExpires() async throws {
        let node = try node(#","leaseDuration":5000"#)
        let lease = try await register(node)
        #expect(lease.duration == .seconds(5))
        #expect(registry.registered(node.objectId)?.node === node)
        #expect(registry.source(node.sources[0].objectId) != nil)
        clock.advance(by: .milliseconds(4999))
        #expect(clock.sleepers == 1)
        #expect(deadvertised.isEmpty)
        clock.advance(by: .milliseconds(1))
        try await until("it is deadvertised") { !deadvertised.isEmpty }
        let identityId = node.communicationManager.identityId
        #expect(deadvertised == [#"{"objectIds":["\#(identityId)","\#(node.objectId)"]}"#])
        #expect(registry.registered(node.objectId) == nil)
        #expect(registry.source(node.sources[0].objectId) == nil)
        try await registerAgain(node.objectId)
        await registry.stop()
    }

    @Test func renewalRestartsTheLease() async throws {
        let node = try node()
        #expect(try await register(node).duration == Lease.defaultDuration)
        for _ in 0..<3 {
            clock.advance(by: .seconds(29))
            #expect(registry.renew(node, for: nil)?.duration == .seconds(30))
            try await until("the old timer ends") { [clock] in clock.sleepers == 1 }
        }
        #expect(registry.renew(node, for: .seconds(2))?.duration == .seconds(2))
        try await until("the old timer ends") { [clock] in clock.sleepers == 1 }
        #expect(registry.renew(node, for: nil)?.duration == .seconds(2))
        try await until("the old timer ends") { [clock] in clock.sleepers == 1 }
        clock.advance(by: .seconds(2))
        try await until("it is deadvertised") { !deadvertised.isEmpty }
        #expect(registry.renew(node, for: nil) == nil)
        #expect(clock.sleepers == 0)
        await registry.stop()
    }

    @Test func withdrawnNodeLeavesNothingBehind() async throws {
        let node = try node()
        _ = try await register(node)
        #expect(await registry.withdraw(node))
        #expect(deadvertised.count == 1)
        try await until("its timer ends") { [clock] in clock.sleepers == 0 }
        #expect(await !registry.withdraw(node))
        #expect(registry.all.isEmpty)
        try await registerAgain(node.objectId)
        await registry.stop()
    }

    @Test func duplicateIdsAndExcessNodesAreRefused() async throws {
        let first = try node()
        _ = try await register(first)
        let again = try node(#","ioActors":[{"name":"a","valueType":"t","objectId":"\#(first.objectId)"}]"#)
        await #expect(throws: IoNodeRegistry.Refusal.conflict(pointer: "/ioActors/0/objectId")) {
            try await registry.register(again, owner: .anonymous)
        }
        let second = try node()
        _ = try await register(second)
        let third = try node()
        await #expect(throws: IoNodeRegistry.Refusal.tooMany(limit: 2)) {
            try await registry.register(third, owner: .anonymous)
        }
        #expect(await registry.withdraw(first))
        _ = try await registry.register(third, owner: .anonymous)
        #expect(registry.all.map(\.node.objectId) == [second.objectId, third.objectId])
        await registry.stop()
    }

    @Test func nodeWithoutBrokerIsRefusedAndRemoved() async throws {
        broker.setAvailable(false)
        let node = try node()
        let refused = Task { [registry] in try await registry.register(node, owner: .anonymous) }
        try await until("it waits") { [clock] in clock.sleepers == 1 }
        #expect(registry.all.isEmpty)
        clock.advance(by: IoNodeRegistry.joinTimeout)
        await #expect(throws: IoNodeRegistry.Refusal.offline) { try await refused.value }
        #expect(clock.sleepers == 0)
        broker.setAvailable(true)
        try await registerAgain(node.objectId)
        await registry.stop()
    }

    @Test func stopDeadvertisesAllNodes() async throws {
        let nodes = [try node(), try node()]
        for node in nodes { _ = try await register(node) }
        await registry.stop()
        #expect(deadvertised.count == 2)
        try await until("the timers end") { [clock] in clock.sleepers == 0 }
        #expect(registry.all.isEmpty)
        let late = try node()
        await #expect(throws: IoNodeRegistry.Refusal.stopped) { try await registry.register(late, owner: .anonymous) }
        await registry.stop()
    }
}

/// A timer that calls a function at a time of a clock, unless it is released before.
private final class SleepingTimer: Sendable {
    private let task: Task<Void, Never>

    init(_ clock: SteeredClock, _ duration: Duration, _ handler: @escaping @Sendable () -> Void) {
        task = Task {
            guard (try? await clock.sleep(for: duration)) != nil else { return }
            handler()
        }
    }

    deinit { task.cancel() }
}
