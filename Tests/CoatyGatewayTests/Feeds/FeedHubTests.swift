import Foundation
import Testing
import TestSupport

@testable import Base
@testable import Coaty
@testable import CoatyTestSupport
@testable import Feeds
@testable import Network

/// Feeds shared by equal subscriptions, with an in-memory broker.
@Suite(.exclusive, .closesOutboundQueues) struct FeedHubTests {
    private let broker = TopicBroker()
    private let manager: CommunicationManager
    private let objects: ObjectRegistry
    private let transport = SteeredTransport()
    private let outbound: OutboundQueue

    init() throws {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        outbound = OutboundQueue(transport)
    }

    private func hub(_ resumeWindow: Duration) async -> FeedHub {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        return await FeedHub(manager, objects, options, resumeWindow: resumeWindow)
    }

    private static let channel = Observation.channel(WireName("c"))

    private func deliver(_ number: Int, channel: String = "c") {
        let payload = #"{"object":\#(Made.object(1, number))}"#
        broker.publish(topic: "coaty/3/-/CHN:\(channel)/\(CoatyUUID())", payload: Array(payload.utf8))
    }

    private func join() async throws {
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
    }

    private func delivered(_ id: String) throws -> [DeliveredFrame.Content] {
        try transport.delivered.filter { $0.id == id }.map(\.content)
    }

    private func until(_ id: String, _ expected: DeliveredFrame.Content) async throws {
        try await untilTrue("\(id) receives \(expected)") { try delivered(id).contains(expected) }
    }

    private func cursor(_ number: Int) throws -> FeedCursor {
        try #require(try transport.delivered.last { $0.event == number }?.cursor)
    }

    private func subscription(_ id: String, since: FeedCursor? = nil) -> ClientSubscription {
        outbound.open(id: id, options: Made.options { $0.since = since.map(ClientCursor.plain) })
    }

    @Test func equalSubscriptionsShareAFeed() async throws {
        let hub = await hub(.zero)
        try await join()
        let ends = ["a", "b"].map { hub.subscribe(subscription($0), to: Self.channel) }
        for id in ["a", "b"] { try await until(id, .ok) }
        deliver(1)
        for id in ["a", "b"] { try await until(id, .event(1)) }
        let cursors = try transport.delivered.filter { $0.event != nil }.compactMap(\.cursor)
        #expect(Set(cursors).count == 1 && cursors.count == 2)
        // The feed continues when one of its subscriptions ends.
        ends[0]()
        deliver(2)
        try await until("b", .event(2))
        #expect(try delivered("a") == [.ok, .event(1)])
        ends[1]()
        await manager.stop()
    }

    @Test func eventsThatTheBrokerMayHaveDroppedAreAGap() async throws {
        let hub = await hub(.seconds(60))
        try await join()
        let ends = ["a", "b"].map { hub.subscribe(subscription($0), to: Self.channel) }
        for id in ["a", "b"] { try await until(id, .ok) }
        deliver(1)
        for id in ["a", "b"] { try await until(id, .event(1)) }
        manager.mayHaveMissed()
        for id in ["a", "b"] { try await until(id, .gap(nil)) }
        deliver(2)
        for id in ["a", "b"] {
            try await until(id, .event(2))
            #expect(try delivered(id) == [.ok, .event(1), .gap(nil), .event(2)])
        }
        // A client that resumes gets the gap, too.
        let late = hub.subscribe(subscription("late", since: try cursor(1)), to: Self.channel)
        try await until("late", .event(2))
        #expect(try delivered("late").contains(.gap(nil)))
        for end in ends + [late] { end() }
        await manager.stop()
    }

    @Test func feedStaysForResumingClients() async throws {
        let hub = await hub(.seconds(3600))
        try await join()
        let end = hub.subscribe(subscription("a"), to: Self.channel)
        try await until("a", .ok)
        deliver(1)
        try await until("a", .event(1))
        end()
        let other = hub.subscribe(subscription("other"), to: .raw(WireName("t")))
        try await until("other", .ok)
        deliver(2)
        let endAgain = hub.subscribe(subscription("b", since: try cursor(1)), to: Self.channel)
        try await until("b", .event(2))
        #expect(try delivered("b") == [.ok, .event(2)])
        endAgain()
        other()
        await manager.stop()
    }

    @Test func trafficEvictsNoRecordsOfOtherFeeds() async throws {
        let hub = await hub(.seconds(3600))
        try await join()
        let ends = [
            hub.subscribe(subscription("a"), to: Self.channel),
            hub.subscribe(subscription("t"), to: .traffic([.channel])),
        ]
        for id in ["a", "t"] { try await until(id, .ok) }
        deliver(1)
        try await until("a", .event(1))
        deliver(2)
        // Twice the limit of the replay buffer.
        for _ in 0..<200 {
            let payload = #"{"object":\#(Made.object(1, 0, padding: 10_000))}"#
            broker.publish(topic: "coaty/3/-/CHN:other/s", payload: Array(payload.utf8))
        }
        deliver(3, channel: "other")
        try await until("t", .event(3))
        let first = try #require(try transport.delivered.first { $0.id == "a" && $0.event == 1 }).cursor
        let end = hub.subscribe(subscription("b", since: first), to: Self.channel)
        try await until("b", .event(2))
        #expect(try delivered("b") == [.ok, .event(2)])
        // Traffic has a separate part of the replay buffer.
        let traffic = try #require(try transport.delivered.first { $0.id == "t" && $0.event == 1 }).cursor
        let endOfTraffic = hub.subscribe(subscription("u", since: traffic), to: .traffic([.channel]))
        try await until("u", .event(3))
        #expect(try delivered("u").count { if case .gap = $0 { true } else { false } } == 1)
        for end in ends + [end, endOfTraffic] { end() }
        await manager.stop()
    }

    /// The two choices that were used last can be resumed, whatever choices were used before.
    @Test func lastTwoTrafficChoicesCanBeResumed() async throws {
        let hub = await hub(.seconds(3600))
        try await join()
        let choices: [Character: Observation] = [
            "A": .traffic([.channel]), "B": .traffic([.call]), "C": .traffic([.discover]), "D": .traffic([.query]),
        ]
        var end: @Sendable () -> Void = {}
        for (index, choice) in "ABABCDAB".enumerated() {
            end()
            if index == 7 { deliver(8) }
            end = hub.subscribe(subscription("\(index)"), to: try #require(choices[choice]))
            try await until("\(index)", .ok)
            if index == 6 {
                deliver(7)
                try await until("6", .event(7))
            }
        }
        end()
        end = hub.subscribe(subscription("again", since: try cursor(7)), to: .traffic([.channel]))
        try await until("again", .event(8))
        #expect(try delivered("again") == [.ok, .event(8)])
        end()
        await manager.stop()
    }

    @Test(arguments: [Duration.zero, .milliseconds(1)])
    func unusedFeedClosesAfterResumeWindow(_ window: Duration) async throws {
        let hub = await hub(window)
        try await join()
        let end = hub.subscribe(subscription("a"), to: Self.channel)
        try await until("a", .ok)
        deliver(1)
        try await until("a", .event(1))
        let last = try cursor(1)
        end()
        // Repeat until the resume window has passed. A feed that still exists would know the cursor.
        var turn = 0
        try await untilTrue("the source has gone") {
            turn += 1
            let id = "b\(turn)"
            hub.subscribe(subscription(id, since: last), to: Self.channel)()
            return try delivered(id).contains(.gap(nil)) || delivered(id).isEmpty
        }
        await manager.stop()
    }

    /// A feed that has ended must not close its successor when its last subscription is removed.
    @Test func leavingEndedFeedDoesNotCloseItsSuccessor() async throws {
        let hub = await hub(.zero)
        try await join()
        let end = hub.subscribe(subscription("a"), to: Self.channel)
        try await until("a", .ok)
        await manager.stop()
        try await until("a", .done("withdrawn"))
        try await join()
        let successor = hub.subscribe(subscription("b"), to: Self.channel)
        try await until("b", .ok)
        end()
        deliver(1)
        try await until("b", .event(1))
        successor()
        await manager.stop()
    }

    @Test func numberOfFeedsIsBounded() async throws {
        let hub = await hub(.zero)
        let ends = (0..<Limits()[.feeds].total).map { number in
            hub.subscribe(subscription("l"), to: .raw(WireName("t/\(number)")))
        }
        #expect(hub.refusal(of: .raw(WireName("other")))?.status == 503)
        #expect(hub.refusal(of: .raw(WireName("t/7"))) == nil)
        #expect(hub.refusal(of: .objects(nil))?.status == 503)
        for end in ends { end() }
        #expect(hub.refusal(of: .raw(WireName("other"))) == nil)
    }

    /// Unused feeds make room for new ones.
    @Test func unusedFeedsDoNotCountTowardsBound() async throws {
        let hub = await hub(.seconds(3600))
        for number in 0..<Limits()[.feeds].total {
            hub.subscribe(subscription("l"), to: .raw(WireName("t/\(number)")))()
        }
        for number in 0..<3 {
            let request = Observation.raw(WireName("other/\(number)"))
            #expect(hub.refusal(of: request) == nil)
            _ = hub.subscribe(subscription("l"), to: request)
        }
    }

    /// The same applies if the observed object is removed between the check and the subscription.
    @Test(arguments: [
        Observation.ioValue(actor: .init()), .ioState(point: .init()), .routing(context: .init()),
    ])
    func observationOfMissingObjectIsRefused(_ request: Observation) async throws {
        let hub = await hub(.zero)
        #expect(hub.refusal(of: request)?.status == 404)
        let cancel = hub.subscribe(subscription("l"), to: request)
        // An `iostate` subscription needs no reply from the broker, so it has already begun.
        if case .ioValue = request {
            try await until("l", .error)
        } else {
            try await until("l", .done("withdrawn"))
        }
        cancel()
    }

    @Test func snapshotDeliversExistingObjects() async throws {
        let hub = await hub(.zero)
        objects.start()
        try await join()
        let agent = CoatyUUID()
        func advertise(_ key: Int, _ number: Int) {
            let payload = #"{"object":\#(Made.object(key, number))}"#
            broker.publish(topic: "coaty/3/-/ADV:CoatyObject/\(agent)", payload: Array(payload.utf8))
        }
        let marker = ObjectKind.object(WireName("t"))
        _ = hub.subscribe(outbound.open(id: "early", wanted: .objects(marker)), to: .objects(marker))
        try await until("early", .ok)
        try await untilTrue("both are known") {
            // Repeat until the object registry observes them.
            for key in 1...2 { advertise(key, 1) }
            return try delivered("early").filter { $0 == .change("added") }.count == 2
        }
        let high = try Made.condition(#"["n",["GreaterThan",1]]"#)
        _ = hub.subscribe(outbound.open(id: "late", wanted: .objects(marker)), to: .objects(marker))
        let filtered = outbound.open(id: "high", options: Made.options { $0.filter = high }, wanted: .objects(marker))
        let end = hub.subscribe(filtered, to: .objects(marker))
        try await untilTrue("the snapshot is delivered") { try delivered("late").count == 3 }
        #expect(try delivered("late") == [.ok, .change("added"), .change("added")])
        // A client can't resume in the middle of a snapshot: only the last frame has a cursor.
        #expect(try transport.delivered.filter { $0.id == "late" }.map { $0.cursor == nil } == [true, true, false])
        advertise(1, 2)
        advertise(1, 3)
        advertise(1, 0)
        try await untilTrue("all came") { try delivered("early").count == 6 }
        try await untilTrue("all came through the filter") { try delivered("high").count == 4 }
        #expect(try delivered("high") == [.ok, .change("added"), .change("changed"), .change("removed")])
        end()
        await manager.stop()
        objects.stop()
    }
}
