import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive) struct ObjectCacheControllerTests {
    private let broker = TopicBroker()
    private let user = User(name: "first", names: ScimUserNames(formatted: "First"))

    @Test func concurrentLookupsShareOneDiscover() async throws {
        let here = try await agent()
        let there = try await agent()
        let answering = try there.lifecycle.advertiseDiscoverableObject(object: user)
        let id = user.objectId
        let cache = here.cache
        async let first = cache.name(of: id)
        async let second = cache.name(of: id)
        #expect(try await [first, second] == ["first", "first"])
        #expect(try await cache.name(of: id) == "first")
        #expect(discovers(of: id) == 1)
        answering.cancel()
        await stop(here, there)
    }

    @Test func followsAdvertisements() async throws {
        let here = try await agent()
        let there = try await agent()
        let answering = try there.lifecycle.advertiseDiscoverableObject(object: user)
        let id = user.objectId
        #expect(try await here.cache.name(of: id) == "first")
        user.name = "second"
        try there.lifecycle.readvertiseDiscoverableObject(object: user)
        try await here.cache.untilName(of: id, is: "second")
        #expect(discovers(of: id) == 1)
        answering.cancel()
        await stop(here, there)
    }

    @Test func deadvertisedObjectOrParentIsForgotten() async throws {
        let here = try await agent()
        let there = try await agent()
        let id = user.objectId
        for gone in [id, there.container.identity.objectId] {
            let answering = try there.lifecycle.advertiseDiscoverableObject(object: user)
            #expect(try await here.cache.name(of: id) == "first")
            answering.cancel()
            here.cache.limit = .milliseconds(20)
            defer { here.cache.limit = .seconds(60) }
            try there.container.communicationManager.publishDeadvertise(.with(objectIds: gone))
            try await here.cache.untilName(of: id, is: nil)
        }
        await stop(here, there)
    }

    @Test func cacheIsClearedOnConnectionLoss() async throws {
        let here = try await agent()
        let there = try await agent()
        let answering = try there.lifecycle.advertiseDiscoverableObject(object: user)
        let id = user.objectId
        #expect(try await here.cache.name(of: id) == "first")
        answering.cancel()
        broker.setAvailable(false)
        try await here.container.communicationManager.untilOnline(.offline)
        #expect(try await here.cache.name(of: id) == "first")
        broker.setAvailable(true)
        here.cache.limit = .milliseconds(20)
        try await here.cache.untilName(of: id, is: nil)
        await stop(here, there)
    }

    @Test func leastRecentlyUsedObjectIsEvicted() async throws {
        let here = try await agent()
        let there = try await agent()
        let users = ["a", "b", "c"].map { User(name: $0, names: ScimUserNames(formatted: $0)) }
        let answering = try users.map { try there.lifecycle.advertiseDiscoverableObject(object: $0) }
        // The cache has room for two objects.
        for index in [0, 1, 0, 2, 0] { _ = try await here.cache.name(of: users[index].objectId) }
        #expect(users.map { discovers(of: $0.objectId) } == [1, 1, 1])
        _ = try await here.cache.name(of: users[1].objectId)
        #expect(users.map { discovers(of: $0.objectId) } == [1, 2, 1])
        for subscription in answering { subscription.cancel() }
        await stop(here, there)
    }

    @Test func onlyMatchingObjectsAreCached() async throws {
        let here = try await agent()
        let there = try await agent()
        let id = user.objectId
        let answers: [CoatyObject] = [
            User(name: "hidden", names: ScimUserNames(formatted: "h"), objectId: id),
            CoatyObject(coreType: .CoatyObject, objectType: "com.example.Job", objectId: id, name: "job"),
            user,
        ]
        let events = try answers.map { try ResolveEvent.with(object: $0) }
        let answering = there.container.communicationManager.subscribe(.discover) { event in
            for answer in events { _ = try? event.resolve(answer) }
        }
        #expect(try await here.cache.name(of: id) == "first")
        user.name = "hidden"
        here.cache.limit = .milliseconds(20)
        answering.cancel()
        try there.container.communicationManager.publishAdvertise(.with(object: user))
        try await here.cache.untilName(of: id, is: nil)
        await stop(here, there)
    }

    @Test func pendingRequestsAreLimited() async throws {
        let here = try await agent()
        let cache = here.cache
        let asking = (0..<SmallUserCache.requests).map { _ in
            Task { try await cache.name(of: CoatyUUID()) }
        }
        _ = try await broker.waitForMessages {
            $0.count { $0.topic.contains("/DSC/") } == SmallUserCache.requests
        }
        await #expect(throws: ObjectCacheError.tooManyRequests) { try await cache.name(of: CoatyUUID()) }
        // The stop ends pending requests.
        await stop(here)
        for task in asking {
            #expect(try await withPatience { try await task.value } == nil)
        }
    }

    private typealias Agent = (container: Container, cache: SmallUserCache, lifecycle: ObjectLifecycleController)

    private func agent() async throws -> Agent {
        let broker = broker
        let container = try Container.resolve(
            components: Components(
                controllers: ["Cache": SmallUserCache.self, "Lifecycle": ObjectLifecycleController.self]
            ),
            configuration: Configuration(
                communication: CommunicationOptions(shouldAutoStart: true) { _ in TopicBinding(broker: broker) }
            )
        )
        try await container.communicationManager.untilOnline()
        return (
            container, try #require(container.getController(name: "Cache")),
            try #require(container.getController(name: "Lifecycle"))
        )
    }

    private func stop(_ agents: Agent...) async {
        for agent in agents { await agent.container.shutdown() }
    }

    private func discovers(of id: CoatyUUID) -> Int {
        broker.published.count {
            $0.topic.contains("/DSC/") && String(decoding: $0.payload, as: UTF8.self).contains(id.string)
        }
    }
}

private final class SmallUserCache: ObjectCacheController<User> {
    nonisolated static let requests = 3
    var limit = Duration.seconds(60)

    override var coreType: CoreType { .User }
    override var maximumObjects: Int { 2 }
    override var maximumRequests: Int { Self.requests }
    override var timeLimit: Duration { limit }
    override func isIncluded(_ object: User) -> Bool { object.name != "hidden" }

    func name(of id: CoatyUUID) async throws -> String? { try await resolveObject(objectId: id)?.name }

    func untilName(of id: CoatyUUID, is name: String?) async throws {
        try await withPatience { [self] in
            while try await self.name(of: id) != name { try await Task.sleep(for: .milliseconds(1)) }
        }
    }
}
