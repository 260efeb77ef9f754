import Coaty
import Foundation
import TestSupport
import Testing

@testable import CoatyGateway

@testable import CoatyTestSupport

/// One source for all who want the same, at a broker in memory.
@Suite(.closesOutlets) struct StreamHubTests {
    private let broker = TopicBroker()
    private let manager: CommunicationManager
    private let objects: ObjectRegistry
    private let transport = SteeredTransport()
    private let outlet: Outlet

    init() throws {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        outlet = Outlet(transport)
    }

    private func hub(_ resumeWindow: Duration) async -> StreamHub {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        return await StreamHub(manager, objects, options, resumeWindow: resumeWindow)
    }

    private static let channel = StreamRequest.channel(WireName("c"))

    private func say(_ number: Int, channel: String = "c") {
        let payload = #"{"object":\#(Made.object(1, number))}"#
        broker.publish(topic: "coaty/3/-/CHN:\(channel)/\(CoatyUUID())", payload: Array(payload.utf8))
    }

    private func join() async throws {
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
    }

    private func told(_ id: String) throws -> [Told.Content] {
        try transport.told.filter { $0.id == id }.map(\.content)
    }

    private func until(_ id: String, _ expected: Told.Content) async throws {
        try await untilTrue("\(id) is told \(expected)") { try told(id).contains(expected) }
    }

    private func cursor(_ number: Int) throws -> StreamCursor {
        try #require(try transport.told.last { $0.event == number }?.cursor)
    }

    private func lane(_ id: String, since: StreamCursor? = nil) -> Lane {
        outlet.open(id: id, options: Made.options { $0.since = since })
    }

    @Test func allWhoWantTheSameShareASource() async throws {
        let hub = await hub(.zero)
        try await join()
        let ends = ["a", "b"].map { hub.subscribe(lane($0), to: Self.channel) }
        for id in ["a", "b"] { try await until(id, .ok) }
        say(1)
        for id in ["a", "b"] { try await until(id, .event(1)) }
        let cursors = try transport.told.filter { $0.event != nil }.compactMap(\.cursor)
        #expect(Set(cursors).count == 1 && cursors.count == 2)
        // One of them may go.
        ends[0]()
        say(2)
        try await until("b", .event(2))
        #expect(try told("a") == [.ok, .event(1)])
        ends[1]()
        await manager.stop()
    }

    @Test func aSourceStaysForThoseWhoComeBack() async throws {
        let hub = await hub(.seconds(3600))
        try await join()
        let end = hub.subscribe(lane("a"), to: Self.channel)
        try await until("a", .ok)
        say(1)
        try await until("a", .event(1))
        end()
        let other = hub.subscribe(lane("other"), to: .raw(WireName("t")))
        try await until("other", .ok)
        say(2)
        let endAgain = hub.subscribe(lane("b", since: try cursor(1)), to: Self.channel)
        try await until("b", .event(2))
        #expect(try told("b") == [.ok, .event(2)])
        endAgain()
        other()
        await manager.stop()
    }

    @Test func trafficDrivesNothingOutThatOthersResume() async throws {
        let hub = await hub(.seconds(3600))
        try await join()
        let ends = [
            hub.subscribe(lane("a"), to: Self.channel), hub.subscribe(lane("t"), to: .traffic([.channel])),
        ]
        for id in ["a", "t"] { try await until(id, .ok) }
        say(1)
        try await until("a", .event(1))
        say(2)
        // Twice what is kept of all.
        for _ in 0..<200 {
            let payload = #"{"object":\#(Made.object(1, 0, padding: 10_000))}"#
            broker.publish(topic: "coaty/3/-/CHN:other/s", payload: Array(payload.utf8))
        }
        say(3, channel: "other")
        try await until("t", .event(3))
        let first = try #require(try transport.told.first { $0.id == "a" && $0.event == 1 }).cursor
        let end = hub.subscribe(lane("b", since: first), to: Self.channel)
        try await until("b", .event(2))
        #expect(try told("b") == [.ok, .event(2)])
        // Of traffic there is what its own part holds.
        let traffic = try #require(try transport.told.first { $0.id == "t" && $0.event == 1 }).cursor
        let endOfTraffic = hub.subscribe(lane("u", since: traffic), to: .traffic([.channel]))
        try await until("u", .event(3))
        #expect(try told("u").count { if case .gap = $0 { true } else { false } } == 1)
        for end in ends + [end, endOfTraffic] { end() }
        await manager.stop()
    }

    /// The last two choices that were left stay, whatever was chosen before.
    @Test func whoSwitchesAmongChoicesCanGoBack() async throws {
        let hub = await hub(.seconds(3600))
        try await join()
        let choices: [Character: StreamRequest] = [
            "A": .traffic([.channel]), "B": .traffic([.call]), "C": .traffic([.discover]), "D": .traffic([.query]),
        ]
        var end: @Sendable () -> Void = {}
        for (index, choice) in "ABABCDAB".enumerated() {
            end()
            if index == 7 { say(8) }
            end = hub.subscribe(lane("\(index)"), to: try #require(choices[choice]))
            try await until("\(index)", .ok)
            if index == 6 {
                say(7)
                try await until("6", .event(7))
            }
        }
        end()
        end = hub.subscribe(lane("again", since: try cursor(7)), to: .traffic([.channel]))
        try await until("again", .event(8))
        #expect(try told("again") == [.ok, .event(8)])
        end()
        await manager.stop()
    }

    @Test(arguments: [Duration.zero, .milliseconds(1)])
    func aSourceGoesWithoutThem(_ window: Duration) async throws {
        let hub = await hub(window)
        try await join()
        let end = hub.subscribe(lane("a"), to: Self.channel)
        try await until("a", .ok)
        say(1)
        try await until("a", .event(1))
        let last = try cursor(1)
        end()
        // Asked in vain until the window is over: a source that is still there would know its cursor.
        var turn = 0
        try await untilTrue("the source has gone") {
            turn += 1
            let id = "b\(turn)"
            hub.subscribe(lane(id, since: last), to: Self.channel)()
            return try told(id).contains(.gap(nil)) || told(id).isEmpty
        }
        await manager.stop()
    }

    /// A source that has ended by itself must not take its successor along when its last user goes.
    @Test func whoLeavesAnEndedSourceDoesNotCountForItsSuccessor() async throws {
        let hub = await hub(.zero)
        try await join()
        let end = hub.subscribe(lane("a"), to: Self.channel)
        try await until("a", .ok)
        await manager.stop()
        try await until("a", .done("withdrawn"))
        try await join()
        let successor = hub.subscribe(lane("b"), to: Self.channel)
        try await until("b", .ok)
        end()
        say(1)
        try await until("b", .event(1))
        successor()
        await manager.stop()
    }

    @Test func theNumberOfSourcesIsBounded() async throws {
        let hub = await hub(.zero)
        let ends = (0..<StreamHub.maximumSources).map { number in
            hub.subscribe(lane("l"), to: .raw(WireName("t/\(number)")))
        }
        #expect(hub.refusal(of: .raw(WireName("other")))?.status == 503)
        #expect(hub.refusal(of: .raw(WireName("t/7"))) == nil)
        #expect(hub.refusal(of: .objects(nil))?.status == 503)
        for end in ends { end() }
        #expect(hub.refusal(of: .raw(WireName("other"))) == nil)
    }

    /// Those that nobody uses make room.
    @Test func sourcesThatWaitForNobodyDoNotCount() async throws {
        let hub = await hub(.seconds(3600))
        for number in 0..<StreamHub.maximumSources {
            hub.subscribe(lane("l"), to: .raw(WireName("t/\(number)")))()
        }
        for number in 0..<3 {
            let request = StreamRequest.raw(WireName("other/\(number)"))
            #expect(hub.refusal(of: request) == nil)
            _ = hub.subscribe(lane("l"), to: request)
        }
    }

    /// Also where it goes between the question and the subscription.
    @Test(arguments: [
        StreamRequest.ioValue(actor: .init()), .ioState(point: .init()), .routing(context: .init()),
    ])
    func whatIsNotThereIsRefused(_ request: StreamRequest) async throws {
        let hub = await hub(.zero)
        #expect(hub.refusal(of: request)?.status == 404)
        let cancel = hub.subscribe(lane("l"), to: request)
        // A state stands without the broker's word, and so has begun.
        if case .ioValue = request {
            try await until("l", .error)
        } else {
            try await until("l", .done("withdrawn"))
        }
        cancel()
    }

    @Test func aSnapshotBeginsWithWhatIsThere() async throws {
        let hub = await hub(.zero)
        objects.start()
        try await join()
        let agent = CoatyUUID()
        func advertise(_ key: Int, _ number: Int) {
            let payload = #"{"object":\#(Made.object(key, number))}"#
            broker.publish(topic: "coaty/3/-/ADV:CoatyObject/\(agent)", payload: Array(payload.utf8))
        }
        let marker = StreamRequest.ObjectKind.object(WireName("t"))
        _ = hub.subscribe(outlet.open(id: "early", wanted: .objects(marker)), to: .objects(marker))
        try await until("early", .ok)
        try await untilTrue("both are known") {
            // Again, until the registry observes them.
            for key in 1...2 { advertise(key, 1) }
            return try told("early").filter { $0 == .change("added") }.count == 2
        }
        let high = try Made.condition(#"["n",["GreaterThan",1]]"#)
        _ = hub.subscribe(outlet.open(id: "late", wanted: .objects(marker)), to: .objects(marker))
        let filtered = outlet.open(id: "high", options: Made.options { $0.filter = high }, wanted: .objects(marker))
        let end = hub.subscribe(filtered, to: .objects(marker))
        try await untilTrue("what is there is told") { try told("late").count == 3 }
        #expect(try told("late") == [.ok, .change("added"), .change("added")])
        // Who has not got all of the beginning can't resume in it.
        #expect(try transport.told.filter { $0.id == "late" }.map { $0.cursor == nil } == [true, true, false])
        advertise(1, 2)
        advertise(1, 3)
        advertise(1, 0)
        try await untilTrue("all came") { try told("early").count == 6 }
        try await untilTrue("all came through the filter") { try told("high").count == 4 }
        #expect(try told("high") == [.ok, .change("added"), .change("changed"), .change("removed")])
        end()
        await manager.stop()
        objects.stop()
    }
}
