import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// When an agent is online, and what it sends again in each online period.
@Suite(.exclusive) struct OnlineTests {
    private let binding = RecordingBinding()

    private func agent(_ name: String = "Agent") throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: name),
            options: CommunicationOptions { [binding] _ in binding }
        )
    }

    private func object(_ name: String, parent: CoatyUUID?) -> CoatyObject {
        let object = CoatyObject(coreType: .CoatyObject, objectType: "com.example.Job", objectId: .init(), name: name)
        object.parentObjectId = parent
        return object
    }

    /// Takes all operations, completes them, and answers subscriptions if requested.
    ///
    /// - Returns: the names of the published events, object types with a colon in front.
    @discardableResult
    private func take(_ link: RecordedSession, answers: Bool = true) -> [String] {
        var published: [String] = []
        while let operation = link.nextOperation() {
            switch operation {
            case .subscribe(_, let ticket): if answers { link.subscribed(ticket) }
            case .publish(let message):
                link.publicationSent()
                let address = EventAddress(topic: message.topic)
                published.append(address.map { "\($0.eventType) \($0.wireName ?? "")" } ?? message.topic)
            case .unsubscribe, .disconnect: break
            }
        }
        return published
    }

    @Test func agentIsOnlineAfterAllSubscriptionsAreAnswered() async throws {
        let agent = try agent()
        let observations = try (0..<3).map { try agent.subscribe(.channel("\($0)")) { _ in } }
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        #expect(agent.isConnected && !agent.isOnline && agent.statistics.state == .offline)
        // Neither publications nor requests wait until the agent is online.
        #expect(try agent.publishRaw(.with(topic: "t", payload: [1] as [UInt8])) == .sent)
        let request = try agent.publish(DiscoverEvent.with(coreTypes: [.Task])) { _ in }
        #expect(request.delivery == .sent)
        guard case .subscribe(let filters, let ticket) = link.nextOperation() else {
            Issue.record("subscriptions come first")
            return
        }
        #expect(filters.count == 4)
        let published = take(link)
        #expect(published == ["advertise Identity", "t", "discover "])
        #expect(!agent.isOnline, "the broker has not answered the subscription of the request")
        // A refusal counts as an answer.
        link.subscribed(ticket, refused: ["coaty/3/-/CHN:1/+"])
        #expect(agent.isOnline && agent.onlinePeriod == 1 && agent.statistics.refusedSubscriptions == 1)
        withExtendedLifetime((observations, request)) {}
        await agent.stop()
    }

    @Test func agentIsOnlineAfterTheAnswerDeadline() async throws {
        var configuration = Session.Configuration(
            identityId: nil,
            namespace: "-",
            observesAllNamespaces: false,
            limits: OutboxLimits()
        )
        configuration.answerTime = .milliseconds(1)
        let delegate = NoDelegate()
        let session = Session(configuration, binding: binding, log: SessionLog(logger: .init(label: "test")))
        session.addPermanent(.events(.discover, name: nil), decode: { _ in }, handler: { (_: Void) in })
        session.start(delegate)
        let link = try #require(binding.link)
        link.opened()
        try await withPatience {
            while session.communicationState.value != .online { try await Task.sleep(for: .milliseconds(1)) }
        }
        await session.stop(forGood: true, delegate)
    }

    /// Regression test: a stream of states does not show a connection that is lost and immediately restored.
    @Test func immediateReconnectGetsANewNumber() async throws {
        let agent = try agent()
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        take(link)
        let periods = agent.onlinePeriods()
        let seen = Recorder<Int>()
        let reading = Task { for await period in periods { seen.append(period) } }
        #expect(try await seen.wait(for: 1) == [1])
        for _ in 0..<3 {
            link.closed()
            link.opened()
            take(link)
        }
        try await withPatience { while seen.values.last != 4 { try await Task.sleep(for: .milliseconds(1)) } }
        // A stream that begins while the agent is not online waits for the next period.
        link.closed()
        let late = Task {
            for await period in agent.onlinePeriods() { return period }; return 0
        }
        link.opened()
        take(link)
        #expect(await late.value == 5)
        reading.cancel()
        await agent.stop()
    }

    /// Regression test: the broker's will had deadvertised the agent's objects, but only its identity was advertised
    /// again.
    @Test func sharedObjectsAreAdvertisedAgainAfterAReconnect() async throws {
        let agent = try agent()
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        take(link)
        let (kept, gone) = (object("kept", parent: agent.identityId), object("gone", parent: agent.identityId))
        try agent.publishAdvertise(.with(object: kept))
        try agent.publishAdvertise(.with(object: gone))
        try agent.publishAdvertise(.with(object: object("other", parent: nil)))
        kept.name = "kept, second version"
        try agent.publishAdvertise(.with(object: kept))
        let log = Log(logLevel: .info, logMessage: "m", logDate: "d")
        log.parentObjectId = agent.identityId
        try agent.publishAdvertise(.with(object: log))
        take(link)
        try agent.publishDeadvertise(.with(objectIds: gone.objectId))
        take(link)
        for _ in 0..<2 {
            link.closed()
            // An object whose event was deferred in the meantime is not advertised twice.
            try agent.publishAdvertise(.with(object: object("new", parent: agent.identityId)))
            link.opened()
            var names: [String] = []
            while let operation = link.nextOperation() {
                guard case .publish(let message) = operation else { continue }
                link.publicationSent()
                names.append(try Payload(message.payload).json["object"]?["name"]?.string ?? message.topic)
            }
            #expect(names.first == "Agent" && names.count { $0 == "kept, second version" } == 2)
            #expect(!names.contains("gone") && !names.contains("other") && !names.contains("kept"))
            #expect(names.suffix(2) == ["new", "new"])
            #expect(Set(names).count == 3)
        }
        await agent.stop()
        // A restarted agent has no objects.
        agent.start()
        let again = try #require(binding.link)
        again.opened()
        #expect(take(again) == ["advertise Identity"])
        await agent.stop()
    }

    @Test func objectThatIsNoLongerSharedIsNotAdvertisedAgain() async throws {
        let agent = try agent()
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        let (moved, orphan) = (object("moved", parent: agent.identityId), object("orphan", parent: agent.identityId))
        for object in [moved, orphan] { try agent.publishAdvertise(.with(object: object)) }
        moved.parentObjectId = nil
        try agent.publishAdvertise(.with(object: moved))
        take(link)
        link.closed()
        link.opened()
        #expect(take(link) == ["advertise Identity", "advertise CoatyObject", "advertise :com.example.Job"])
        // Deadvertising the parent removes its children.
        try agent.publishDeadvertise(.with(objectIds: agent.identityId))
        take(link)
        link.closed()
        link.opened()
        #expect(take(link) == ["advertise Identity"])
        await agent.stop()
    }

    /// A request that was made offline and then sent ends with the connection, even if the broker had not acknowledged
    /// it.
    @Test func requestMadeOfflineEndsWithTheConnection() async throws {
        let agent = try agent()
        let ended = Recorder<Bool>()
        let request = try agent.publish(DiscoverEvent.with(coreTypes: [.Task]), onEnd: { ended.append(true) }) { _ in }
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        take(link, answers: false)
        #expect(ended.values.isEmpty)
        link.closed()
        #expect(ended.values == [true])
        request.cancel()
        await agent.stop()
    }

    @Test func objectDeadvertisedWhileOfflineIsNotAdvertisedAgain() async throws {
        let agent = try agent()
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        let shared = object("shared", parent: agent.identityId)
        try agent.publishAdvertise(.with(object: shared))
        take(link)
        link.closed()
        try agent.publishDeadvertise(.with(objectIds: shared.objectId))
        link.opened()
        #expect(take(link) == ["advertise Identity", "deadvertise "])
        await agent.stop()
    }

    @Test func advertisedObjectsAreBounded() throws {
        var objects = AdvertisedObjects()
        func publication(_ size: Int, _ id: CoatyUUID) -> Publication {
            Publication(
                .raw(topic: "t", isRetained: false),
                payload: [UInt8](repeating: 0, count: size),
                sharing: .advertises(id, parentId: "parent", isObjectType: false)
            )
        }
        for _ in 0..<AdvertisedObjects.maximumObjects + 5 { _ = objects.written(publication(1, .init())) }
        #expect(objects.inOrder.count == AdvertisedObjects.maximumObjects && objects.refused == 5)
        objects = AdvertisedObjects()
        let isKept = objects.written(publication(AdvertisedObjects.maximumBytes, .init()))
        #expect(!isKept && objects.inOrder.isEmpty && objects.refused == 1)
    }

    @Test func roomIsAnnouncedOnce() async throws {
        let agent = try agent()
        for _ in 0..<4 { try agent.publishRaw(.with(topic: "t", payload: [1] as [UInt8])) }
        let calls = Recorder<String>()
        let now = agent.whenRoom(below: 5, bytes: 1000) { calls.append("now") }
        let later = agent.whenRoom(below: 2, bytes: 1000) { calls.append("later") }
        let never = agent.whenRoom(below: 1, bytes: 1000) { calls.append("never") }
        #expect(calls.values == ["now"])
        never.cancel()
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        take(link)
        #expect(calls.values == ["now", "later"])
        withExtendedLifetime((now, later)) {}
        await agent.stop()
    }
}

private final class NoDelegate: SessionDelegate {
    func received(_: InboundMessage) {}
    func dropped(_: String, label _: String, origin _: InboundMessage.Origin?) {}
    func mayHaveMissed() {}
    func sessionEnded() {}
}
