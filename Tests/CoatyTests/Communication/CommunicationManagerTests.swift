import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@Suite(.exclusive) struct CommunicationManagerTests {
    private func manager(
        _ binding: any Binding,
        name: String = "Agent",
        limits: OutboxLimits = OutboxLimits()
    ) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: name),
            options: CommunicationOptions(outboxLimits: limits) { _ in binding }
        )
    }

    private func job(_ name: String) -> CoatyObject {
        CoatyObject(coreType: .CoatyObject, objectType: "com.example.Job", objectId: .init(), name: name)
    }

    @Test func publicationsBeforeStartAreDeferred() async throws {
        let broker = TopicBroker()
        let agent = try manager(TopicBinding(broker: broker))
        #expect(try agent.publishAdvertise(.with(object: job("first"))) == .deferred)
        #expect(try agent.publishDeadvertise(.with(objectIds: agent.identityId)) == .deferred)
        agent.start()
        let topics = try await broker.waitForMessages(4).map { EventAddress(topic: $0.topic)?.wireName }
        #expect(topics == ["Identity", "CoatyObject", ":com.example.Job", nil])
        #expect(try agent.publishAdvertise(.with(object: job("second"))) == .sent)
        await agent.stop()
        #expect(broker.published.last?.topic == "coaty/3/-/DAD/\(agent.identityId)")
    }

    @Test func sendsDeferredPublicationsInOrderAfterEachReconnect() async throws {
        let broker = TopicBroker()
        let agent = try manager(TopicBinding(broker: broker))
        let names = Recorder<String>()
        let subscription = try agent.subscribe(.channel("c")) { event in
            names.append((try? event.data.object?.name) ?? "")
        }
        agent.start()
        try await agent.untilOnline()
        broker.setAvailable(false)
        try await agent.untilOnline(.offline)
        for index in 0..<100 {
            #expect(try agent.publishChannel(.with(object: job("\(index)"), channelId: "c")) == .deferred)
        }
        broker.setAvailable(true)
        #expect(try await names.wait(for: 100) == (0..<100).map { "\($0)" })
        subscription.cancel()
        await agent.stop()
    }

    @Test func refusesANewPublicationWhenTheOutboxIsFull() async throws {
        let broker = TopicBroker()
        let agent = try manager(TopicBinding(broker: broker), limits: OutboxLimits(publications: 3, bytes: 1 << 20))
        try agent.publishAdvertise(.with(object: job("kept")))
        // The event needs two places, but there is only one: no part of it is queued.
        #expect(throws: CommunicationError.self) { try agent.publishAdvertise(.with(object: self.job("refused"))) }
        try agent.publishChannel(.with(object: job("kept too"), channelId: "c"))
        agent.start()
        let topics = try await broker.waitForMessages(4).map(\.topic)
        #expect(topics.count == 4)
        #expect(try await drained(agent))
        await agent.stop()
    }

    @Test func queueIsBoundedByBytes() throws {
        let agent = try manager(
            TopicBinding(broker: TopicBroker()),
            limits: OutboxLimits(publications: 10, bytes: 100)
        )
        #expect(throws: CommunicationError.queueFull(publications: 0, bytes: 0)) {
            try agent.publishChannel(.with(object: self.job(String(repeating: "x", count: 100)), channelId: "c"))
        }
    }

    /// Regression test: a request that had ended long ago was executed when the connection was restored.
    @Test func requestsThatEndWhileOfflineAreNotSent() async throws {
        let broker = TopicBroker()
        let agent = try manager(TopicBinding(broker: broker))
        let call = try CallEvent.with(operation: "com.example.open")
        // The requests end by the time limit, by dropping the stream, and by canceling.
        let limited = try agent.publishCall(call, timeLimit: .milliseconds(1))
        try await withPatience { for await _ in limited {} }
        let reading = Task { for await _ in try agent.publishCall(call) {} }
        try await withPatience { while agent.queued.publications == 0 { await Task.yield() } }
        reading.cancel()
        try await reading.value
        let pending = try agent.publish(call) { _ in }
        #expect(pending.delivery == .deferred)
        #expect(pending.withdraw(), "the request was not sent")
        try await withPatience { while agent.queued.publications > 0 { await Task.yield() } }
        #expect(agent.queued.bytes == 0)
        // A request that has not ended is sent.
        let kept = try agent.publish(call) { _ in }
        agent.start()
        _ = try await broker.waitForMessages { $0.contains { $0.topic.contains("/CLL:") } }
        try agent.publishRaw(.with(topic: "end", payload: [] as [UInt8]))
        let calls = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        #expect(calls.count { $0.topic.contains("/CLL:") } == 1)
        #expect(!kept.withdraw(), "the request was sent")
        await agent.stop()
    }

    @Test func discoversIdentitiesAndAnswers() async throws {
        let broker = TopicBroker()
        let asking = try manager(TopicBinding(broker: broker), name: "asking")
        let asked = try manager(TopicBinding(broker: broker), name: "asked")
        asking.start()
        asked.start()
        // Identities are advertised after the subscriptions.
        _ = try await broker.waitForMessages(2)
        let answering = Task {
            for await event in asked.observeDiscover() where event.data.isDiscoveringExternalId() {
                let object = self.job("found")
                object.externalId = "wrong"
                #expect(throws: PayloadError.self) { try event.resolve(.with(object: object)) }
                object.externalId = event.data.externalId
                try event.resolve(.with(object: object))
            }
        }
        var names: Set<String> = []
        for await event in try asking.publishDiscover(.with(coreTypes: [.Identity])) {
            names.insert(try #require(try event.data.object).name)
            if names.count == 2 { break }
        }
        #expect(names == ["asking", "asked"])
        let event: ResolveEvent? = try await withPatience {
            for await event in try asking.publishDiscover(.with(externalId: "e-1")) { return event }
            return nil
        }
        #expect(try event?.data.object?.name == "found")
        #expect(event?.sourceId == asked.identityId)
        answering.cancel()
        await asked.stop()
        await asking.stop()
    }

    @Test func dropsTheSubscriptionWithItsLastObserver() async throws {
        let binding = RecordingBinding()
        let agent = try manager(binding)
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        while link.nextOperation() != nil { link.publicationSent() }
        let first = try agent.subscribe(.channel("c")) { _ in }
        let second = try agent.subscribe(.channel("c")) { _ in }
        first.cancel()
        first.cancel()
        guard case .subscribe(["coaty/3/-/CHN:c/+"], _) = link.nextOperation() else {
            Issue.record("expected a subscription for the first observer")
            return
        }
        #expect(link.nextOperation() == nil)
        second.cancel()
        guard case .unsubscribe("coaty/3/-/CHN:c/+") = link.nextOperation() else {
            Issue.record("expected an unsubscription with the last observer")
            return
        }
        await agent.stop()
    }

    @Test func unwrittenPublicationsAreSentAgain() async throws {
        let binding = RecordingBinding()
        let agent = try manager(binding)
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        while link.nextOperation() != nil { link.publicationSent() }
        for channel in ["a", "b", "c"] { try agent.publishChannel(.with(object: job(channel), channelId: channel)) }
        _ = link.nextOperation()
        link.publicationSent()
        _ = link.nextOperation()
        link.closed()
        #expect(link.nextOperation() == nil)
        #expect(agent.queued.publications == 2)
        link.opened()
        var topics: [String] = []
        while let operation = link.nextOperation() {
            if case .publish(let publication) = operation { topics.append(publication.topic) }
        }
        #expect(topics.map { EventAddress(topic: $0)?.wireName } == ["Identity", "b", "c"])
        await agent.stop()
    }

    @Test func unsentRequestEndsOnConnectionLoss() async throws {
        let binding = RecordingBinding()
        let agent = try manager(binding)
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        let ended = Recorder<Bool>()
        let request = try agent.publish(DiscoverEvent.with(coreTypes: [.Task]), onEnd: { ended.append(true) }) { _ in }
        // The request is still queued when the connection is lost, so no agent has received it.
        link.closed()
        #expect(ended.values == [true])
        #expect(request.withdraw() && agent.queued.publications == 0)
        await agent.stop()
    }

    @Test func possiblyMissedAnswersAreReportedOnce() async throws {
        let binding = RecordingBinding()
        let agent = try manager(binding, limits: OutboxLimits(publications: 2, bytes: 1 << 20))
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        _ = link.takeRequests()
        let asked = try DiscoverEvent.with(coreTypes: [.CoatyObject])
        let seen = Recorder<String>()
        let request = try agent.publish(asked, onEnd: { seen.append("end") }) { _ in seen.append("answer") }
        let streamed = try agent.publishDiscover(asked)
        #expect(throws: CommunicationError.self) {
            try agent.publish(asked, onEnd: { seen.append("refused end") }) { _ in }
        }
        let requests = link.takeRequests()
        try #require(requests.count == 2)
        link.closed()
        #expect(seen.values == ["end"])
        link.opened()
        let payload = try ResolveEvent.with(object: job("answer")).payload.bytes
        for correlationId in requests {
            link.received(topic: "coaty/3/-/RSV/\(CoatyUUID())/\(correlationId)", payload: payload)
        }
        #expect(seen.values == ["end", "answer"])
        let name = try await withPatience {
            for await event in streamed { return try event.data.object?.name }
            return nil
        }
        #expect(name == "answer", "deferred events survive the loss of the connection")
        await agent.stop()
        #expect(seen.values == ["end", "answer"])
        request.cancel()
    }

    @Test func refusedAnswerSubscriptionEndsTheRequest() async throws {
        let binding = RecordingBinding()
        let agent = try manager(binding)
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        _ = link.takeRequests()
        let ended = Recorder<Bool>()
        let request = try agent.publish(DiscoverEvent.with(coreTypes: [.Task]), onEnd: { ended.append(true) }) { _ in }
        guard case .subscribe(let filters, let ticket) = link.nextOperation() else {
            Issue.record("expected the subscription of the request first")
            return
        }
        link.subscribed(ticket, refused: filters)
        #expect(ended.values == [true])
        request.cancel()
        await agent.stop()
    }

    @Test func startDuringStopStartsAgainAfterwards() async throws {
        let broker = TopicBroker()
        let agent = try manager(TopicBinding(broker: broker))
        agent.start()
        try await agent.untilOnline()
        let stopping = Task { await agent.stop() }
        while !broker.published.contains(where: { $0.topic.contains("/DAD/") }) { await Task.yield() }
        agent.start()
        await stopping.value
        agent.start()
        try await agent.untilOnline()
        try agent.publishChannel(.with(object: job("after"), channelId: "c"))
        _ = try await broker.waitForMessages { $0.contains { $0.topic.contains("/CHN:c/") } }
        await agent.stop()
    }

    @Test func stopEndsStreamsAndDiscardsTheQueue() async throws {
        let broker = TopicBroker()
        broker.setAvailable(false)
        let agent = try manager(TopicBinding(broker: broker))
        agent.start()
        let stream = agent.observeDeadvertise()
        try agent.publishDeadvertise(.with(objectIds: agent.identityId))
        let reading = Task { for await _ in stream {} }
        await agent.stop()
        try await withPatience { await reading.value }
        #expect(agent.queued.publications == 0)
        broker.setAvailable(true)
        agent.start()
        try await agent.untilOnline()
        #expect(try await broker.waitForMessages(1).map(\.topic) == ["coaty/3/-/ADV:Identity/\(agent.identityId)"])
        await agent.stop()
    }

    @Test func observesCoreObjectTypesByCoreType() async throws {
        let broker = TopicBroker()
        let agent = try manager(TopicBinding(broker: broker))
        let names = Recorder<String>()
        let subscription = try agent.subscribe(.advertise(withObjectType: "coaty.CoatyObject")) { event in
            names.append((try? event.data.object.name) ?? "")
        }
        agent.start()
        try agent.publishAdvertise(.with(object: job("other type")))
        let own = CoatyObject(
            coreType: .CoatyObject,
            objectType: "coaty.CoatyObject",
            objectId: .init(),
            name: "own type"
        )
        try agent.publishAdvertise(.with(object: own))
        #expect(try await names.wait(for: 1) == ["own type"])
        subscription.cancel()
        await agent.stop()
    }

    private func drained(_ agent: CommunicationManager) async throws -> Bool {
        try await withPatience {
            while agent.queued.publications > 0 { try await Task.sleep(for: .milliseconds(1)) }
            return agent.queued.bytes == 0
        }
    }
}

extension RecordedSession {
    /// Takes all pending operations, and returns the correlation ids of the requests.
    fileprivate func takeRequests() -> [CoatyUUID] {
        var taken: [CoatyUUID] = []
        while let operation = nextOperation() {
            guard case .publish(let publication) = operation else { continue }
            publicationSent()
            if let id = EventAddress(topic: publication.topic)?.correlationId { taken.append(id) }
        }
        return taken
    }
}
