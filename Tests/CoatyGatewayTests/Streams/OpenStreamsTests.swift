import Coaty
import Testing

@testable import CoatyGateway

@Suite(.closesOutlets) struct OpenStreamsTests {
    private let streams = OpenStreams()
    private let transport = SteeredTransport()
    private let wanted = StreamRequest.channel(WireName("c"))

    private func lane(
        _ id: String?,
        on outlet: Outlet,
        _ change: (inout StreamOptions) -> Void = { _ in }
    ) -> Lane {
        outlet.open(id: id, options: Made.options(change), wanted: wanted, isHeld: false)
    }

    private func say(_ numbers: ClosedRange<Int>, to lane: Lane) throws {
        for number in numbers { lane.take(try Made.event(number, number)) }
    }

    @Test func countsWhatIsToldAndKeepsItWhenTheConnectionGoes() throws {
        let outlets = [Outlet(transport), Outlet(transport)]
        let numbers = [streams.add(outlets[0], .webSocket), streams.add(outlets[1], .sse)]
        #expect(numbers == [1, 2])
        try say(1...3, to: lane("a", on: outlets[0]))
        let other = lane(nil, on: outlets[1])
        try say(1...2, to: other)
        other.takeGap()
        // A request is no subscription, and its responses are no events.
        let request = outlets[0].open(id: "r", isHeld: false)
        _ = outlets[0].append(response: StreamFrame(.response, members: []), to: request)
        var statistics = streams.statistics
        #expect(statistics.connections == 2 && statistics.subscriptions == 2)
        #expect(statistics.told == 5 && statistics.lost == 0 && statistics.waiting == 0)
        #expect(statistics.slowConsumers.isEmpty)

        for (outlet, number) in zip(outlets, numbers) {
            outlet.close()
            streams.remove(number)
            streams.remove(number)
        }
        try say(1...1, to: other)
        statistics = streams.statistics
        #expect(statistics.connections == 0 && statistics.subscriptions == 0 && statistics.told == 5)
    }

    @Test func aClientThatDoesNotReadIsSlowUntilItGoes() throws {
        let outlet = Outlet(transport)
        let number = streams.add(outlet, .webSocket)
        let slow = lane("slow", on: outlet) { $0.buffer = 4 }
        transport.setRoom(1)
        try say(1...7, to: slow)
        // One is told, four wait, two are lost.
        var statistics = streams.statistics
        #expect(statistics.told == 1 && statistics.lost == 2 && statistics.waiting == 4)
        let consumer = try #require(statistics.slowConsumers.first)
        #expect(consumer.connection == number && consumer.transport == .webSocket)
        let subscription = consumer.subscription
        #expect(subscription.id == "slow" && subscription.event == .channel && subscription.overflow == .dropOldest)
        #expect(subscription.waiting == 4 && subscription.lost == 2 && subscription.waitingBytes > 0)

        // The gap that tells of the loss is written; what could not be written waits on.
        transport.setRoom(2)
        outlet.pump()
        statistics = streams.statistics
        #expect(try transport.told.map(\.content) == [.event(1), .gap(2), .event(4)])
        #expect(statistics.told == 2 && statistics.lost == 2 && statistics.waiting == 3)
        transport.setRoom(.max)
        outlet.pump()
        statistics = streams.statistics
        #expect(statistics.told == 5 && statistics.lost == 2 && statistics.waiting == 0)
        #expect(statistics.slowConsumers.map(\.subscription.waiting) == [0], "it has lost something")
        #expect(statistics.slowConsumers.first?.subscription.waitingBytes == 0)

        outlet.close()
        streams.remove(number)
        #expect(streams.statistics.slowConsumers.isEmpty && streams.statistics.lost == 2)
    }

    @Test(arguments: [StreamOptions.Overflow.latest, .close]) func eachOverflowCountsWhatIsLost(
        _ overflow: StreamOptions.Overflow
    ) throws {
        let outlet = Outlet(transport)
        _ = streams.add(outlet, .webSocket)
        let slow = lane("slow", on: outlet) { ($0.overflow, $0.buffer) = (overflow, 2) }
        transport.setRoom(0)
        for number in 1...5 { slow.take(try Made.event(number % 2, number)) }
        // The newest of two objects, or nothing any more.
        #expect(streams.statistics.lost == 3)
        #expect(streams.statistics.waiting == (overflow == .latest ? 2 : 0))
    }

    @Test func whatThrottlingLeavesOutIsNeitherLostNorWaiting() throws {
        let outlet = Outlet(transport)
        _ = streams.add(outlet, .webSocket)
        let throttled = lane("t", on: outlet) { $0.throttle = .seconds(3600) }
        for number in 1...5 { throttled.take(try Made.event(1, number)) }
        let statistics = streams.statistics
        #expect(statistics.told == 1 && statistics.lost == 0 && statistics.waiting == 0)
        #expect(statistics.slowConsumers.isEmpty)
        outlet.end(throttled, .withdrawn)
        #expect(streams.statistics.told == 2, "the last one is told when the subscription ends")
    }

    @Test func whatAClientResumesIsCountedWhenItIsTold() async throws {
        let memory = ResumeMemory(limit: try Made.recordSize() * 10)
        let source = StreamSource(isResumable: true, memory: memory)
        source.update(.standing)
        let outlet = Outlet(transport)
        _ = streams.add(outlet, .webSocket)
        source.add(lane("first", on: outlet))
        for number in 11...30 { source.say(try Made.event(1, number)) }
        try await untilTrue("the first is told") { streams.statistics.told == 20 }

        // Ten are remembered; those before them were missed, and not lost here.
        let begin = try #require(try transport.told.first { $0.event == 11 }?.cursor)
        let resumed = lane("resumed", on: outlet) { $0.since = begin }
        transport.setRoom(2)
        source.add(resumed)
        try await untilTrue("all but two waits") { transport.frames.count == 21 + 2 }
        #expect(try transport.told.suffix(2).map(\.content) == [.ok, .gap(9)])
        #expect(streams.statistics.lost == 0 && streams.statistics.told == 20)
        #expect(streams.statistics.slowConsumers.map(\.subscription.waiting) == [10])
        source.remove(resumed)
        outlet.close(resumed)
        #expect(streams.statistics.slowConsumers.isEmpty)
    }

    @Test func whatIsForgottenWhileAResumedClientDoesNotReadIsLost() async throws {
        let memory = ResumeMemory(limit: try Made.recordSize() * 10)
        let source = StreamSource(isResumable: true, memory: memory)
        source.update(.standing)
        let probe = SteeredTransport()
        source.add(Outlet(probe).open(id: nil))
        for number in 11...15 { source.say(try Made.event(1, number)) }
        let outlet = Outlet(transport)
        _ = streams.add(outlet, .webSocket)
        let begin = try #require(try probe.told.first { $0.event == 11 }?.cursor)
        transport.setRoom(1)
        let slow = lane("slow", on: outlet) { ($0.since, $0.buffer) = (begin, 2) }
        source.add(slow)
        try await untilTrue("it has begun") { transport.frames.count == 1 }
        for number in 16...40 { source.say(try Made.event(1, number)) }
        // One may have been taken out before: what could not be written waits on.
        #expect(streams.statistics.slowConsumers.map(\.subscription.waiting) == [29])
        transport.setRoom(.max)
        outlet.pump()
        try await untilTrue("the rest is told") { try transport.told.last?.event == 40 }
        let told = try transport.told.compactMap(\.event)
        let gaps = try transport.told.reduce(0) { if case .gap(let lost?) = $1.content { $0 + lost } else { $0 } }
        #expect(told.count + gaps == 29)
        let missed = (12...15).filter { !told.contains($0) }.count
        #expect(streams.statistics.lost == gaps - missed && streams.statistics.told == told.count)
        source.close()
    }

    @Test func theWorstAreTold() throws {
        transport.setRoom(0)
        for count in 1...50 {
            let outlet = Outlet(transport)
            _ = streams.add(outlet, .webSocket)
            try say(1...count, to: lane("\(count)", on: outlet) { $0.buffer = 40 })
        }
        let worst = streams.statistics.slowConsumers
        #expect(worst.map(\.subscription.lost) == (1...10).reversed() + Array(repeating: 0, count: 10))
        #expect(worst.map(\.subscription.waiting) == Array(repeating: 40, count: 11) + (31...39).reversed())
        #expect(streams.statistics.waiting == (1...40).reduce(0, +) + 10 * 40)
    }
}
