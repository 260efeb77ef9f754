import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive) struct ObjectLifecycleControllerTests {
    private let broker = TopicBroker()

    @Test func tracksAnObjectFromItsAdvertisementToItsDeadvertisement() async throws {
        let here = try await agent("here")
        let there = try await agent("there")
        let infos = try here.lifecycle.observeObjectLifecycleInfoByObjectType(with: "com.example.Job").steps
        let job = job("first")
        let subscription = try there.lifecycle.advertiseDiscoverableObject(object: job)
        #expect(job.parentObjectId == there.container.identity.objectId)
        #expect(try await infos.step() == ["added first"])
        try there.lifecycle.readvertiseDiscoverableObject(object: job)
        job.name = "second"
        try there.lifecycle.readvertiseDiscoverableObject(object: job)
        #expect(try await infos.step() == ["changed second"])
        try there.lifecycle.deadvertiseDiscoverableObject(object: job, discoverableSubscription: subscription)
        #expect(try await infos.step() == ["removed second"])
        await there.container.shutdown()
        await here.container.shutdown()
        #expect(try await infos.step() == nil)
    }

    @Test func existingObjectsAreDiscovered() async throws {
        let there = try await agent("there")
        let job = job("old")
        let subscription = try there.lifecycle.advertiseDiscoverableObject(object: job)
        job.name = "new"
        try there.lifecycle.readvertiseDiscoverableObject(object: job)
        let here = try await agent("here")
        let byObjectType = try here.lifecycle.observeObjectLifecycleInfoByObjectType(with: "com.example.Job").steps
        let byCoreType = try here.lifecycle.observeObjectLifecycleInfoByCoreType(coreType: .CoatyObject).steps
        #expect(try await byObjectType.step() == ["added new"])
        #expect(try await byCoreType.step() == ["added new"])
        subscription.cancel()
        let later = try await agent("later")
        let asking = later.container.communicationManager
        let answers = Recorder<ResolveEvent>()
        let request = try asking.publish(DiscoverEvent.with(objectTypes: ["com.example.Job"])) { answers.append($0) }
        // An agent that answers this request has received the earlier one.
        let identityId = there.container.identity.objectId
        let isAnswered = try await withPatience {
            for await _ in try asking.publishDiscover(.with(objectId: identityId)) { return true }
            return false
        }
        #expect(isAnswered && answers.values.isEmpty)
        request.cancel()
        for agent in [there, here, later] { await agent.container.shutdown() }
    }

    @Test func discoverableObjectsAnswerAfterARestart() async throws {
        let there = try await agent("there")
        let here = try await agent("here")
        let subscription = try there.lifecycle.advertiseDiscoverableObject(object: job("j"))
        let manager = there.container.communicationManager
        await manager.stop()
        manager.start()
        try await manager.untilOnline()
        let asking = here.container.communicationManager
        let names = try await withPatience {
            for await event in try asking.publishDiscover(.with(objectTypes: ["com.example.Job"])) {
                return try event.data.object?.name
            }
            return nil
        }
        #expect(names == "j")
        withExtendedLifetime(subscription) {}
        for agent in [there, here] { await agent.container.shutdown() }
    }

    @Test func removesTheChildrenOfALostAgent() async throws {
        let here = try await agent("here")
        let there = try await agent("there")
        let agents = try here.lifecycle.observeObjectLifecycleInfoByCoreType(coreType: .Identity) {
            $0.name == "there"
        }.steps
        let jobs = try here.lifecycle.observeObjectLifecycleInfoByObjectType(with: "com.example.Job").steps
        #expect(try await agents.step() == ["added there"])
        let child = try there.lifecycle.advertiseDiscoverableObject(object: job("child"))
        #expect(try await jobs.step() == ["added child"])
        let parentless = job("orphan")
        let orphan = try there.lifecycle.advertiseDiscoverableObject(
            object: parentless,
            shouldSetParentObjectId: false
        )
        #expect(try await jobs.step() == ["added orphan"])
        let will = try DeadvertiseEvent.with(objectIds: there.container.identity.objectId)
        broker.publish(
            topic: "coaty/3/-/DAD/\(there.container.identity.objectId)",
            payload: will.payload.bytes
        )
        #expect(try await agents.step() == ["removed there"])
        #expect(try await jobs.step() == ["removed child"])
        child.cancel()
        // It has no parent, so it was still there.
        try there.lifecycle.deadvertiseDiscoverableObject(object: parentless, discoverableSubscription: orphan)
        #expect(try await jobs.step() == ["removed orphan"])
        await there.container.shutdown()
        await here.container.shutdown()
    }

    @Test func missedChangesAreFoundAfterReconnect() async throws {
        let here = try await agent("here")
        let infos = try here.lifecycle.observeObjectLifecycleInfoByObjectType(with: "com.example.Job").steps
        let there = try await agent("there")
        let kept = try there.lifecycle.advertiseDiscoverableObject(object: job("before"))
        #expect(try await infos.step() == ["added before"])
        broker.setAvailable(false)
        try await here.container.communicationManager.untilOnline(.offline)
        try await there.container.communicationManager.untilOnline(.offline)
        let published = broker.published.count
        broker.setAvailable(true)
        // One agent sends a Discover event again, the other one advertises again.
        _ = try await broker.waitForMessages {
            let since = $0.dropFirst(published)
            return since.contains { $0.topic.contains("/DSC/") }
                && since.contains { $0.topic.contains("/ADV::com.example.Job/") }
        }
        let missed = try there.lifecycle.advertiseDiscoverableObject(object: job("after"))
        #expect(try await infos.step() == ["added after"])
        kept.cancel()
        missed.cancel()
        await there.container.shutdown()
        await here.container.shutdown()
    }

    @Test func filtersObjects() async throws {
        let here = try await agent("here")
        let infos = try here.lifecycle.observeObjectLifecycleInfoByObjectType(with: "com.example.Job") {
            $0.name.hasPrefix("open")
        }.steps
        let manager = here.container.communicationManager
        let job = job("closed")
        try manager.publishAdvertise(.with(object: job))
        job.name = "open 1"
        try manager.publishAdvertise(.with(object: job))
        #expect(try await infos.step() == ["added open 1"])
        job.name = "closed again"
        try manager.publishAdvertise(.with(object: job))
        #expect(try await infos.step() == ["removed open 1"])
        await here.container.shutdown()
    }

    @Test func unreadChangesAreMerged() async throws {
        let here = try await agent("here")
        let manager = here.container.communicationManager
        let stream = try here.lifecycle.observeObjectLifecycleInfoByObjectType(with: "com.example.Job")
        let gone = job("gone")
        let changing = job("v1")
        try manager.publishAdvertise(.with(object: gone))
        try manager.publishAdvertise(.with(object: changing))
        changing.name = "v2"
        try manager.publishAdvertise(.with(object: changing))
        try manager.publishDeadvertise(.with(objectIds: gone.objectId))
        try manager.publishAdvertise(.with(object: job("last")))
        // This event is received after all earlier ones, on the same thread.
        let marks = Recorder<Bool>()
        let subscription = try manager.subscribe(.channel("mark")) { _ in marks.append(true) }
        try manager.publishChannel(.with(object: job("mark"), channelId: "mark"))
        _ = try await marks.wait(for: 1)
        let infos = stream.steps
        #expect(try await infos.step() == ["added v2", "added last"])
        subscription.cancel()
        await here.container.shutdown()
    }

    @Test func endsItsSubscriptionsWithTheStream() async throws {
        let here = try await agent("here")
        let manager = here.container.communicationManager
        let selector = EventSelector.events(.advertise, name: .objectType(WireName("com.example.Job")))
        var stream: AsyncStream<ObjectLifecycleInfo>? = try here.lifecycle.observeObjectLifecycleInfoByObjectType(
            with: "com.example.Job"
        )
        #expect(manager.session.dispatcher(for: selector) != nil)
        #expect(stream != nil)
        stream = nil
        try await withPatience {
            while manager.session.dispatcher(for: selector) != nil { try await Task.sleep(for: .milliseconds(1)) }
        }
        await here.container.shutdown()
    }

    @Test func objectsBeyondTheLimitAreRefused() async throws {
        let here = try await agent("here")
        let tracker = ObjectTracker(
            try .advertise(withObjectType: "com.example.Job"),
            try .with(objectTypes: ["com.example.Job"]),
            objectFilter: nil,
            communicationManager: here.container.communicationManager
        )
        let job = job("x")
        for _ in 0..<(ObjectLifecycleController.maximumObjects + 1) {
            job.objectId = CoatyUUID()
            tracker.take(try AdvertiseEvent.with(object: job).payload)
        }
        let added = try await tracker.next()?.added?.count
        #expect(added == ObjectLifecycleController.maximumObjects)
        await here.container.shutdown()
    }

    private func job(_ name: String) -> CoatyObject {
        CoatyObject(coreType: .CoatyObject, objectType: "com.example.Job", objectId: .init(), name: name)
    }

    private func agent(_ name: String) async throws -> (container: Container, lifecycle: ObjectLifecycleController) {
        let broker = broker
        let container = try Container.resolve(
            components: Components(controllers: ["Lifecycle": ObjectLifecycleController.self]),
            configuration: Configuration(
                common: CommonOptions(agentIdentity: ["name": .string(name)]),
                communication: CommunicationOptions(shouldAutoStart: true) { _ in TopicBinding(broker: broker) }
            )
        )
        try await container.communicationManager.untilOnline()
        return (container, try #require(container.getController(name: "Lifecycle")))
    }
}

extension AsyncStream<ObjectLifecycleInfo> {
    fileprivate var steps: Steps { Steps(stream: self) }
}

/// Reads infos one by one, each within ``patience``.
private struct Steps {
    let stream: AsyncStream<ObjectLifecycleInfo>

    /// Returns a description of the next info; nil at the end.
    func step() async throws -> [String]? {
        let stream = stream
        return try await withPatience {
            for await info in stream {
                return try (info.added ?? []).map { "added \($0.name)" }
                    + (info.changed ?? []).map { "changed \($0.name)" }
                    + (info.removed ?? []).map { "removed \($0.name)" }
            }
            return nil
        }
    }
}
