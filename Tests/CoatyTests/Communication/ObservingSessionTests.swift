import Logging
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@Suite(.exclusive) struct ObservingSessionTests {
    private static let log = DropLog(logger: .init(label: "test"))

    /// An observer whose session the test controls.
    private final class Scene: Sendable {
        let binding = RecordingBinding()
        let statuses = Recorder<SubscriptionStatus>()
        let lines = Recorder<LineRecordingLogHandler.Line>()
        let gaps = Recorder<Bool>()
        let observer: ObservingSession

        init(
            _ eventTypes: Set<CommunicationEventType> = Set(CommunicationEventType.allCases),
            onStatus: @escaping @Sendable (SubscriptionStatus) -> Void = { _ in }
        ) {
            observer = ObservingSession(
                [.traffic(eventTypes)],
                where: { eventTypes.contains($0.eventType) },
                namespace: "-",
                observesAllNamespaces: false,
                binding: binding,
                dropLog: ObservingSessionTests.log,
                messageCounts: MessageCounts(),
                logger: Logger(label: "test") { [lines] _ in LineRecordingLogHandler(lines: lines) },
                onStatus: { [statuses] status in
                    statuses.append(status)
                    onStatus(status)
                },
                onGap: { [gaps] _ in gaps.append(true) },
                handler: { (_, _) in }
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
        let subscription = try manager.observeSeparately(
            [.traffic([.call])],
            where: { _ in true },
            messageCounts: MessageCounts(),
            onStatus: { _ in }
        ) { [place] (_, _) in withExtendedLifetime(place) {} }
        place = nil
        subscription.cancel()
        try await withPatience { while !binding.hasLeft { try await Task.sleep(for: .milliseconds(1)) } }
        #expect(held != nil)
        binding.end()
        #expect(held == nil)
    }
}
