import Coaty
import Synchronization
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import Feeds

/// Order and timing of the frames for one client, depending on how much it reads.
@Suite(.exclusive, .closesOutboundQueues) struct OutboundQueueTests {
    let transport = SteeredTransport()

    func outbound(hasOneSubscription: Bool = false) -> OutboundQueue {
        OutboundQueue(transport, hasOneSubscription: hasOneSubscription)
    }

    func read(_ outbound: OutboundQueue, _ room: Int = .max) {
        transport.setRoom(room)
        outbound.pump()
    }

    func delivered() throws -> [String] { try transport.delivered.map(\.description) }

    @Test func repliesComeFirstAndSubscriptionsTakeTurns() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscriptions = ["a", "b", "c"].map { outbound.begun(id: $0) }
        for number in 1...3 { subscriptions[0].take(try Made.event(1, number)) }
        subscriptions[1].take(try Made.event(1, 4))
        subscriptions[1].end(.withdrawn)
        subscriptions[2].take(try Made.event(1, 5))
        outbound.begin(subscriptions[2])
        outbound.reply(.pong, id: "p")
        read(outbound, 5)
        #expect(try delivered() == ["c ok", "p pong", "a event(1)", "b event(4)", "c event(5)"])
        outbound.reply(.pong, id: "q")
        read(outbound)
        let rest = ["q pong", "a event(2)", #"b done("withdrawn")"#, "a event(3)"]
        #expect(try delivered().dropFirst(5) == rest[...])
    }

    @Test func doneFrameFollowsQueuedEvents() async throws {
        let ended = Mutex<[String]>([])
        transport.setRoom(0)
        let outbound = outbound()
        let subscription = outbound.begun(id: "a")
        subscription.attach(IdleActivity { ended.withLock { $0.append("a") } })
        outbound.begin(subscription)
        for number in 1...3 { subscription.take(try Made.event(1, number)) }
        subscription.end(.withdrawn)
        subscription.end(.limit)
        subscription.take(try Made.event(1, 4))
        read(outbound, 3)
        #expect(ended.withLock(\.self).isEmpty)
        read(outbound)
        subscription.take(try Made.event(1, 5))
        #expect(try delivered() == ["a ok", "a event(1)", "a event(2)", "a event(3)", #"a done("withdrawn")"#])
        try await untilTrue("the end is delivered") { ended.withLock(\.self) == ["a"] }
        #expect(transport.finished.isEmpty)
    }

    @Test func singleStreamFinishesAfterDoneFrame() throws {
        let outbound = outbound(hasOneSubscription: true)
        let subscription = outbound.begun(id: nil)
        outbound.begin(subscription)
        transport.setRoom(1)
        for number in 1...2 { subscription.take(try Made.event(1, number)) }
        subscription.end(.withdrawn)
        read(outbound, 1)
        #expect(transport.finished.isEmpty)
        read(outbound, 1)
        #expect(transport.finished == [.done(.withdrawn)])
        read(outbound)
        subscription.end(.limit)
        outbound.pump()
        #expect(transport.finished == [.done(.withdrawn)])
        #expect(try delivered() == ["- ok", "- event(1)", "- event(2)", #"- done("withdrawn")"#])
    }

    @Test func singleStreamFinishesAfterRefusal() throws {
        transport.setRoom(0)
        let outbound = outbound(hasOneSubscription: true)
        let subscription = outbound.begun(id: nil)
        subscription.refuse(Problems.subscriptionRefused)
        #expect(transport.finished.isEmpty)
        read(outbound)
        subscription.take(try Made.event(1, 1))
        subscription.end(.withdrawn)
        #expect(try delivered() == ["- error"])
        #expect(transport.finished == [.refused(status: 403)])
    }

    @Test func overflowFinishesSingleStream() throws {
        transport.setRoom(0)
        let outbound = outbound(hasOneSubscription: true)
        let subscription = outbound.begun(id: nil, options: Made.options { ($0.buffer, $0.overflow) = (2, .close) })
        for number in 1...9 { subscription.take(try Made.event(1, number)) }
        read(outbound)
        // The event that the transport refused is in the buffer, too.
        #expect(try delivered() == [#"- done("overflow")"#])
        #expect(transport.finished == [.done(.overflow)])
    }

    @Test func closedSubscriptionIsRemoved() throws {
        transport.setRoom(0)
        let outbound = outbound()
        let subscriptions = ["a", "b"].map { outbound.begun(id: $0) }
        for subscription in subscriptions { subscription.take(try Made.event(1, 1)) }
        outbound.close(subscriptions[0])
        subscriptions[0].take(try Made.event(1, 2))
        subscriptions[0].takeGap()
        subscriptions[0].end(.withdrawn)
        read(outbound)
        #expect(try delivered() == ["b event(1)"])
    }

    @Test func nothingIsDeliveredAfterClose() throws {
        for room in [0, 1, Int.max] {
            let transport = SteeredTransport(room: room)
            let outbound = OutboundQueue(transport)
            let subscription = outbound.begun(id: "a")
            for number in 1...3 { subscription.take(try Made.event(1, number)) }
            let before = transport.frames
            outbound.close()
            transport.setRoom(.max)
            outbound.pump()
            outbound.close()
            outbound.begin(subscription)
            subscription.take(try Made.event(1, 4))
            subscription.takeGap()
            subscription.end(.withdrawn)
            subscription.refuse(Problems.subscriptionRefused)
            outbound.begun(id: "b").take(try Made.event(1, 5))
            #expect(!outbound.append(response: .pong, to: subscription))
            #expect(transport.frames == before)
        }
    }

    @Test func closedTransportIsNotWrittenAgain() throws {
        let outbound = outbound()
        let subscription = outbound.begun(id: "a")
        transport.setRoom(0)
        for number in 1...3 { subscription.take(try Made.event(1, number)) }
        transport.go()
        outbound.pump()
        #expect(!outbound.append(response: .pong, to: subscription))
        #expect(transport.frames.isEmpty)
    }

    @Test func throttledEventPrecedesDoneFrame() throws {
        let outbound = outbound()
        let subscription = outbound.begun(
            id: "a",
            options: Made.options { $0.throttle = Throttle(interval: .seconds(3600)) }
        )
        for number in 1...3 { subscription.take(try Made.event(1, number)) }
        subscription.end(.withdrawn)
        #expect(try delivered() == ["a event(1)", "a event(3)", #"a done("withdrawn")"#])
    }

    @Test func throttledEventIsDeliveredAfterInterval() async throws {
        let outbound = outbound()
        let subscription = outbound.begun(
            id: "a",
            options: Made.options { $0.throttle = Throttle(interval: .milliseconds(1)) }
        )
        subscription.take(try Made.event(1, 1))
        subscription.take(try Made.event(1, 2))
        try await untilTrue("the last comes") { try transport.delivered.last?.event == 2 }
        // Again, after the first timer has ended.
        for number in 3...9 { subscription.take(try Made.event(1, number)) }
        try await untilTrue("the last comes again") { try transport.delivered.last?.event == 9 }
    }

    /// A client that resumes from the cursor of the gap gets the throttled events.
    @Test func gapIsDeliveredBeforeThrottledEvents() throws {
        let outbound = outbound()
        let subscription = outbound.begun(
            id: "a",
            options: Made.options { $0.throttle = Throttle(interval: .seconds(3600)) }
        )
        for number in 1...4 { subscription.take(try Made.event(number % 2, number)) }
        subscription.take(EventRecord(.gap, cursor: FeedCursor(epoch: 1, position: 9)))
        #expect(try delivered() == ["a event(1)", "a event(2)", "a gap(nil)"])
        #expect(try transport.delivered.last?.cursor?.position == 1)
    }

    // MARK: - Held subscriptions

    @Test func heldSubscriptionDeliversNothingBeforeOk() throws {
        let outbound = outbound()
        let subscription = outbound.open(id: "a")
        let response = ServerFrame(.response, members: Array(#""n":1"#.utf8))
        for _ in 0..<3 { #expect(outbound.append(response: response, to: subscription)) }
        outbound.end(subscription, .limit)
        outbound.reply(.pong, id: "p")
        #expect(try delivered() == ["p pong"])
        transport.setRoom(0)
        outbound.begin(subscription)
        read(outbound)
        #expect(
            try delivered() == ["p pong", "a ok", "a response", "a response", "a response", #"a done("limit")"#]
        )
    }

    @Test func closeReportsWhetherSubscriptionHadBegun() async throws {
        let ended = Mutex<[String]>([])
        let outbound = outbound()
        func closing(_ subscription: ClientSubscription) -> String { "\(outbound.close(subscription))" }
        let subscriptions = ["a", "b", "c", "d"].map { id in
            let subscription = outbound.open(id: id)
            subscription.attach(IdleActivity { ended.withLock { $0.append(id) } })
            return subscription
        }
        #expect(closing(subscriptions[0]) == "held")
        #expect(closing(subscriptions[0]) == "over")
        outbound.begin(subscriptions[0])
        outbound.begin(subscriptions[1])
        #expect(closing(subscriptions[1]) == "begun")
        outbound.begin(subscriptions[2])
        outbound.end(subscriptions[2], .withdrawn)
        #expect(closing(subscriptions[2]) == "over", "its end is written")
        outbound.refuse(subscriptions[3], Problems.subscriptionRefused)
        #expect(closing(subscriptions[3]) == "over")
        #expect(try delivered() == ["b ok", "c ok", #"c done("withdrawn")"#, "d error"])
        try await untilTrue("the ends are delivered") { Set(ended.withLock(\.self)) == ["c", "d"] }
    }

    /// The client may use its places again when it has the end.
    @Test(arguments: ["done", "error", "unsubscribe"]) func theEndFreesThePlaces(end: String) {
        final class Spot: Sendable {}
        let outbound = outbound()
        let subscription = outbound.begun(id: "a")
        weak var spot: Spot?
        do {
            let held = Spot()
            spot = held
            subscription.occupy([held])
        }
        #expect(spot != nil)
        switch end {
        case "done": subscription.end(.withdrawn)
        case "error": subscription.refuse(Problems.subscriptionRefused)
        default: outbound.close(subscription)
        }
        #expect(spot == nil)
        withExtendedLifetime(subscription) {}
    }

    /// Neither queued events, nor the feed, nor a timer retain a disconnected client.
    @Test(arguments: [nil, Duration.seconds(3600)])
    func disconnectedClientIsReleased(_ throttle: Duration?) async throws {
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 1 << 20))
        feed.update(.standing)
        func use() throws -> (Weak<OutboundQueue>, Weak<ClientSubscription>, Weak<SteeredTransport>) {
            let transport = SteeredTransport(room: 2)
            let outbound = OutboundQueue(transport)
            let subscription = outbound.open(
                id: "a",
                options: Made.options { $0.throttle = throttle.map { Throttle(interval: $0) } }
            )
            feed.add(subscription)
            for number in 1...5 { feed.deliver(try Made.event(number % 2, number)) }
            feed.remove(subscription)
            outbound.close()
            return (Weak(outbound), Weak(subscription), Weak(transport))
        }
        let (outbound, subscription, transport) = try use()
        try await untilTrue("all is released") {
            outbound.object == nil && subscription.object == nil && transport.object == nil
        }
    }

    /// A turn of the feed on another thread may have the subscription a little longer.
    @Test func placesAreFreeOnceTheFeedRemovesTheSubscription() {
        final class Place: Sendable {}
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 1 << 20))
        let outbound = outbound()
        let subscription = outbound.open(id: "a")
        func occupy() -> Weak<Place> {
            let place = Place()
            subscription.occupy([place])
            return Weak(place)
        }
        let place = occupy()
        feed.add(subscription)
        #expect(place.object != nil)
        feed.remove(subscription)
        #expect(place.object == nil)
        withExtendedLifetime((outbound, subscription)) {}
    }

    private struct Weak<Object: AnyObject> {
        weak var object: Object?

        init(_ object: Object) { self.object = object }
    }

    /// Several subscriptions of one client whose room varies.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func deliveredAndDroppedEventsAddUpPerSubscription(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let outbound = outbound()
        let limits = (0..<3).map { _ in Int.random(in: 1...6, using: &random) }
        let subscriptions = limits.enumerated().map { index, limit in
            outbound.begun(id: String(index), options: Made.options { $0.buffer = limit })
        }
        var sent = [0, 0, 0]
        for _ in 0..<500 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: read(outbound, Int.random(in: 0...5, using: &random))
            case 1: outbound.reply(.pong, id: "p")
            default:
                let subscription = Int.random(in: 0..<3, using: &random)
                sent[subscription] += 1
                subscriptions[subscription].take(try Made.event(1, sent[subscription]))
            }
        }
        read(outbound)
        let delivered = try transport.delivered
        for subscription in 0..<3 {
            var position = 0
            for frame in delivered where frame.id == String(subscription) {
                switch frame.content {
                case .event(let number):
                    #expect(number == position + 1)
                    position = number
                case .gap(let count): position += try #require(count)
                default: Issue.record("\(frame)")
                }
            }
            #expect(position == sent[subscription])
        }
    }

    /// No subscription stalls if the client gets room while other threads write.
    @Test func noWakeUpIsMissed() async throws {
        let outbound = outbound()
        let subscriptions = (0..<4).map { outbound.begun(id: String($0), options: Made.options { $0.buffer = 4096 }) }
        let events = try (1...1000).map { try Made.event(1, $0) }
        transport.setRoom(0)
        await withTaskGroup(of: Void.self) { group in
            for subscription in subscriptions { group.addTask { for event in events { subscription.take(event) } } }
            group.addTask { [transport] in
                for _ in 0..<2000 {
                    transport.setRoom(2)
                    outbound.pump()
                }
            }
        }
        read(outbound)
        let delivered = try transport.delivered
        for subscription in 0..<4 {
            #expect(delivered.filter { $0.id == String(subscription) }.compactMap(\.event) == Array(1...1000))
        }
    }
}
