import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport
@testable import Feeds

@Suite(.exclusive) struct TrafficEventTests {
    /// An observation of traffic whose session the test controls.
    private final class Scene: Sendable {
        let events = Recorder<TrafficEvent>()
        let binding: RecordingBinding
        private let subscription: Subscription

        init(_ eventTypes: Set<CommunicationEventType> = Set(CommunicationEventType.allCases)) throws {
            let bindings = Recorder<RecordingBinding>()
            let manager = try CommunicationManager(
                identity: Identity(name: "observer"),
                options: CommunicationOptions { _ in
                    let binding = RecordingBinding()
                    bindings.append(binding)
                    return binding
                }
            )
            subscription = try manager.subscribe(
                traffic: eventTypes,
                messageCounts: MessageCounts(),
                onStatus: { _ in },
                onEnd: {},
                handler: { [events] in events.append($0) }
            )
            binding = try #require(bindings.values.last)
        }

        func receive(_ topic: String, _ payload: String) {
            binding.link?.received(topic: topic, payload: Array(payload.utf8))
        }
    }

    @Test func onlyRequestedEventsAreDeliveredOnce() throws {
        let scene = try Scene([.advertise, .update, .call, .ioValue])
        let payload = #"{"a":1}"#
        let delivered = [
            "coaty/3/-/ADV:Task/s", "coaty/3/-/UPD:Task/s/c", "coaty/3/-/CLL::o/s/c", "coaty/3/-/IOV/s",
            "coaty/3/-/ADV/s", "coaty/3/-/ADV:/s",
        ]
        let left = [
            "coaty/3/-/ADV::t/s", "coaty/3/-/UPD::t/s/c", "coaty/3/-/CHN:c/s", "coaty/3/-/RTN/s/c", "coaty/3/-/XXX/s",
            "coaty/3/-/ADV:Task/s/c", "coaty/3/-/ADVx/s", "coaty/3/-/x/y", "coaty/4/-/DAD/s", "x", "",
        ]
        for topic in left + delivered { scene.receive(topic, payload) }
        #expect(scene.events.values.map(\.label) == delivered)
        #expect(scene.events.values.allSatisfy { $0.bytes == Array(payload.utf8) })
    }

    @Test func nonObjectPayloadsAreIgnoredExceptValues() throws {
        let scene = try Scene()
        let deep = String(repeating: #"{"a":"#, count: 1000) + "1" + String(repeating: "}", count: 1000)
        for text in ["", "x", "[1]", "1", "null", #"{"a":}"#, deep] {
            scene.receive("coaty/3/-/DAD/s", text)
            scene.receive("coaty/3/-/IOV/s", text)
        }
        scene.binding.link?.received(
            topic: "coaty/3/-/DAD/s",
            payload: Array(#"{"a":""#.utf8) + [0xFF] + Array("\"}".utf8)
        )
        scene.receive("coaty/3/-/DAD/s", #"{"a":1,"a":2}"#)
        let delivered = scene.events.values.map { ($0.address.eventType, $0.payload != nil) }
        let expected: [(CommunicationEventType, Bool)] =
            [false, false, true, true, true, false, false].map { (.ioValue, $0) } + [(.deadvertise, true)]
        #expect(delivered.count == expected.count)
        #expect(zip(delivered, expected).allSatisfy { $0.0 == $1.0 && $0.1 == $1.1 })
    }

    /// Messages on the observing session were not received by the agent's session, and do not count as invalid there.
    @Test func ignoredMessagesDoNotCountForTheAgent() async throws {
        let broker = TopicBroker()
        let manager = try CommunicationManager(
            identity: Identity(name: "observer"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        manager.start()
        let (statuses, events) = (Recorder<SubscriptionStatus>(), Recorder<String>())
        let subscription = try manager.subscribe(
            traffic: [.channel],
            messageCounts: MessageCounts(),
            onStatus: { statuses.append($0) },
            onEnd: {}
        ) { events.append($0.label) }
        try await withPatience {
            while statuses.values.last != .standing { try await Task.sleep(for: .milliseconds(1)) }
        }
        for _ in 0..<10 { broker.publish(topic: "coaty/3/-/CHN:c/s", payload: Array("no JSON".utf8)) }
        broker.publish(topic: "coaty/3/-/CHN:c/last", payload: Array("{}".utf8))
        #expect(try await events.wait(for: 1) == ["coaty/3/-/CHN:c/last"])
        #expect(manager.statistics.invalid == 0)
        #expect(manager.observerDropLog.dropped == 10)
        subscription.cancel()
        await manager.stop()
    }

    /// The agent's main session is not affected; all traffic is received on another session.
    @Test func observesAllAgentsOnASeparateSession() async throws {
        let broker = TopicBroker()
        let made = Recorder<any Binding>()
        let manager = try CommunicationManager(
            identity: Identity(name: "observer"),
            options: CommunicationOptions { _ in
                let binding = TopicBinding(broker: broker)
                made.append(binding)
                return binding
            }
        )
        let (statuses, events, ends) = (Recorder<SubscriptionStatus>(), Recorder<String>(), Recorder<Int>())
        manager.start()
        try await manager.untilOnline()
        let before = try await broker.waitForMessages(1).count
        var subscription: Subscription? = try manager.subscribe(
            traffic: [.advertise],
            messageCounts: MessageCounts(),
            onStatus: { statuses.append($0) },
            onEnd: { ends.append(1) }
        ) { events.append($0.label) }
        #expect(made.values.count == 2)
        #expect(try await statuses.wait(for: 1) == [.standing])
        #expect(broker.published.count == before, "the observing session publishes nothing")
        let object = CoatyObject(
            coreType: .CoatyObject,
            objectType: "com.example.T",
            objectId: CoatyUUID(),
            name: "o"
        )
        try manager.publishAdvertise(AdvertiseEvent.with(object: object))
        broker.publish(topic: "coaty/3/-/ADV:Task/other", payload: Array("{}".utf8))
        broker.publish(topic: "coaty/3/other/ADV:Task/other", payload: Array("{}".utf8))
        broker.publish(topic: "coaty/3/-/ADV:Log/other", payload: Array("{}".utf8))
        let expected = ["CoatyObject/\(manager.identityId)", "Task/other", "Log/other"]
        #expect(try await events.wait(for: 3) == expected.map { "coaty/3/-/ADV:" + $0 })

        broker.setAvailable(false)
        #expect(try await statuses.wait(for: 2) == [.standing, .offline])
        broker.setAvailable(true)
        #expect(try await statuses.wait(for: 3) == [.standing, .offline, .standing])

        // A second observer receives events in the same turn. When it has received the second event, all observers have
        // received the first one.
        let others = Recorder<String>()
        let other = try manager.subscribe(
            traffic: [.advertise],
            messageCounts: MessageCounts(),
            onStatus: { statuses.append($0) },
            onEnd: {}
        ) { others.append($0.label) }
        _ = try await statuses.wait(for: 4)
        subscription = nil
        for source in ["late", "later"] {
            broker.publish(topic: "coaty/3/-/ADV:Task/\(source)", payload: Array("{}".utf8))
        }
        #expect(try await others.wait(for: 2).map { $0.suffix(5) } == ["/late", "later"])
        #expect(subscription == nil && ends.values.isEmpty)
        #expect(!events.values.contains { $0.hasSuffix("/late") })
        other.cancel()
        await manager.stop()
    }

    @Test func isOfflineAtOnceAndEndsWithItsManager() async throws {
        let broker = TopicBroker()
        broker.setAvailable(false)
        let manager = try CommunicationManager(
            identity: Identity(name: "observer"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        manager.start()
        let (statuses, ends) = (Recorder<SubscriptionStatus>(), Recorder<Int>())
        let subscription = try manager.subscribe(
            traffic: [.call],
            messageCounts: MessageCounts(),
            onStatus: { statuses.append($0) },
            onEnd: { ends.append(1) }
        ) { _ in }
        #expect(statuses.values == [.offline])
        broker.setAvailable(true)
        #expect(try await statuses.wait(for: 2) == [.offline, .standing])
        await manager.stop()
        #expect(ends.values == [1])
        subscription.cancel()
    }
}
