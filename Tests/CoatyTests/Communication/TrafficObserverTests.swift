import Logging
import Synchronization
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@Suite struct TrafficObserverTests {
    private static let log = DropLog(logger: .init(label: "test"))

    /// An observer whose session the test controls.
    private final class Scene: Sendable {
        let binding = RecordingBinding()
        let statuses = Recorder<SubscriptionStatus>()
        let lines = Recorder<LineRecordingLogHandler.Line>()
        let events = Recorder<TrafficEvent>()
        let gaps = Recorder<Bool>()
        let observer: TrafficObserver

        init(
            _ eventTypes: Set<CommunicationEventType> = Set(CommunicationEventType.allCases),
            onStatus: @escaping @Sendable (SubscriptionStatus) -> Void = { _ in }
        ) {
            observer = TrafficObserver(
                eventTypes,
                namespace: "-",
                observesAllNamespaces: false,
                binding: binding,
                dropLog: TrafficObserverTests.log,
                messageCounts: MessageCounts(),
                logger: Logger(label: "test") { [lines] _ in LineRecordingLogHandler(lines: lines) },
                onStatus: { [statuses] status in
                    statuses.append(status)
                    onStatus(status)
                },
                onGap: { [gaps] in gaps.append(true) },
                handler: { [events] in events.append($0) }
            )
            observer.start()
        }

        /// Opens the connection, and returns the subscription with its ticket.
        func open() throws -> (filters: [String], ticket: UInt64) {
            let link = try #require(binding.link)
            link.opened()
            guard case .subscribe(let filters, let ticket) = try #require(link.nextOperation()) else {
                Issue.record("expected a subscription")
                return ([], 0)
            }
            #expect(link.nextOperation() == nil, "an observer publishes nothing")
            return (filters, ticket)
        }

        func receive(_ topic: String, _ payload: String) {
            binding.link?.received(topic: topic, payload: Array(payload.utf8))
        }
    }

    private static let choices: [(Set<CommunicationEventType>, [String])] = [
        (Set(CommunicationEventType.allCases), ["coaty/3/-/+/+", "coaty/3/-/+/+/+"]),
        ([.advertise], ["coaty/3/-/+/+"]), ([.channel, .ioValue], ["coaty/3/-/+/+"]),
        ([.call, .return], ["coaty/3/-/+/+/+"]), ([.update, .deadvertise], ["coaty/3/-/DAD/+", "coaty/3/-/+/+/+"]),
        ([.deadvertise, .ioValue], ["coaty/3/-/DAD/+", "coaty/3/-/IOV/+"]),
        ([.associate, .resolve], ["coaty/3/-/+/+", "coaty/3/-/RSV/+/+"]),
        ([.discover, .resolve, .query], ["coaty/3/-/DSC/+/+", "coaty/3/-/RSV/+/+", "coaty/3/-/QRY/+/+"]),
        ([.retrieve, .complete, .return], ["coaty/3/-/RTV/+/+", "coaty/3/-/CPL/+/+", "coaty/3/-/RTN/+/+"]),
    ]

    @Test(arguments: choices)
    func subscribesOnlyToRequiredFilters(_ types: Set<CommunicationEventType>, _ filters: [String]) throws {
        #expect(try Scene(types).open().filters == filters)
    }

    @Test func sessionHasNoWillAndNoFarewell() async throws {
        let scene = Scene()
        #expect(scene.binding.link?.will == nil)
        #expect(scene.binding.link?.clientId.count == 23)
        _ = try scene.open()
        scene.observer.stop()
        scene.observer.stop()
        try await withPatience { while scene.binding.link != nil { try await Task.sleep(for: .milliseconds(1)) } }
        #expect(scene.binding.leftWith.count == 1)
        guard case .disconnect? = scene.binding.leftWith.first else {
            Issue.record("left with \(scene.binding.leftWith)")
            return
        }
        #expect(scene.statuses.values.isEmpty, "an ended subscription reports no status")
    }

    @Test func reportsItsStatus() throws {
        let scene = Scene()
        scene.binding.link?.subscribed(try scene.open().ticket)
        #expect(scene.statuses.values == [.standing])
        // When the status is known, no caller waits for it.
        scene.observer.waitNoLonger()
        let first = try #require(scene.binding.link)
        first.closed()
        scene.observer.waitNoLonger()
        let ticket = try scene.open().ticket
        #expect(scene.statuses.values == [.standing, .offline])
        // A late reply to the previous connection.
        first.subscribed(ticket - 1)
        #expect(scene.statuses.values == [.standing, .offline])
        first.subscribed(ticket)
        #expect(scene.statuses.values == [.standing, .offline, .standing])
    }

    @Test func possiblyMissedEventsAreReportedAsGap() throws {
        let scene = Scene([.advertise])
        let session = try #require(scene.binding.link?.session)
        _ = try scene.open()
        func drop(_ type: CommunicationEventType) {
            let address = EventAddress(type, namespace: "-", sourceId: CoatyUUID())
            session.dropped("a message that is too long", label: "", origin: .event(address))
        }
        drop(.deadvertise)
        #expect(scene.gaps.values.isEmpty)
        drop(.advertise)
        session.mayHaveMissed()
        #expect(scene.gaps.values.count == 2)
        scene.observer.stop()
        session.mayHaveMissed()
        #expect(scene.gaps.values.count == 2)
    }

    @Test func waitingObserverGetsOfflineStatus() throws {
        let scene = Scene()
        scene.observer.waitNoLonger()
        scene.observer.waitNoLonger()
        #expect(scene.statuses.values == [.offline])
        scene.binding.link?.subscribed(try scene.open().ticket)
        #expect(scene.statuses.values == [.offline, .standing])
    }

    @Test func partialRefusalIsReportedAsRefused() throws {
        let scene = Scene()
        scene.binding.link?.subscribed(try scene.open().ticket, refused: ["coaty/3/-/+/+/+"])
        #expect(scene.statuses.values == [.refused])
    }

    /// The order holds even if the next change arrives while a change is being reported.
    @Test func statusesAreReportedInOrderWithoutALock() throws {
        let (answer, steps) = (Recorder<@Sendable () -> Void>(), Recorder<String>())
        let scene = Scene { status in
            steps.append("\(status)…")
            for answer in answer.values where status == .offline { answer() }
            steps.append("\(status)")
        }
        let (ticket, link) = (try scene.open().ticket, try #require(scene.binding.link))
        answer.append { link.subscribed(ticket) }
        scene.observer.waitNoLonger()
        #expect(steps.values == ["offline…", "offline", "standing…", "standing"])
    }

    /// A binding may be delayed, and hold its session for some time after it was left.
    @Test func handlerLivesAsLongAsTheSession() async throws {
        final class LingeringBinding: TopicNamingBinding {
            private let state = Mutex<(session: BindingSession?, hasLeft: Bool)>((nil, false))

            var hasLeft: Bool { state.withLock(\.hasLeft) }

            func join(_ session: BindingSession) { state.withLock { $0.session = session } }
            func wake() {}
            func leave() async { state.withLock { $0.hasLeft = true } }
            func end() { state.withLock { $0.session.take() }?.lost(nil) }
        }
        final class Place: Sendable {}
        let binding = LingeringBinding()
        let manager = try CommunicationManager(
            identity: Identity(name: "observer"),
            options: CommunicationOptions { _ in binding }
        )
        var place: Place? = Place()
        weak let held = place
        let subscription = try manager.subscribe(traffic: [.call], onStatus: { _ in }, onEnd: {}) {
            [place] _ in withExtendedLifetime(place) {}
        }
        place = nil
        subscription.cancel()
        try await withPatience { while !binding.hasLeft { try await Task.sleep(for: .milliseconds(1)) } }
        #expect(held != nil)
        binding.end()
        #expect(held == nil)
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

    @Test func onlyRequestedEventsAreDeliveredOnce() throws {
        let scene = Scene([.advertise, .update, .call, .ioValue])
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
        let scene = Scene()
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
        let other = try manager.subscribe(traffic: [.advertise], onStatus: { statuses.append($0) }, onEnd: {}) {
            others.append($0.label)
        }
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
