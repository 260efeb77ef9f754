import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Two routers of the same context at one broker, of which one is silent.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct SilentRouterTests {
    private typealias Scene = RouterScene<RuleBasedIoRouter>

    private final class SilentRouter: RuleBasedIoRouter {
        var reported = 0

        override func onInit() {
            super.onInit()
            startSilent()
        }

        override func onAssociationsChanged(_ changes: IoAssociationChanges) { reported += changes.count }
    }

    private static let all = IoAssociationRule(name: "all") { _, _, _, _, _, _ in true }

    /// Starts a silent router at the broker of a scene, and waits until it has decided on the scene's nodes.
    private func startSilent(_ scene: Scene, associations: Int) async throws -> (Container, SilentRouter) {
        let broker = scene.broker
        let container = try Container.resolve(
            components: Components(controllers: ["router": SilentRouter.self]),
            configuration: Configuration(
                communication: CommunicationOptions { _ in TopicBinding(broker: broker) },
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: ["ioContext": IoContext.test(), "rules": [Self.all]])
                ])
            )
        )
        let router: SilentRouter = try #require(container.getController(name: "router"))
        container.communicationManager.start()
        try await container.communicationManager.untilOnline()
        try Self.advertise(scene)
        try await Self.wait { router.associations.count == associations }
        return (container, router)
    }

    private static func advertise(_ scene: Scene) throws {
        try scene.advertise(IoNode("n1", sources: [IoSource("s")]), IoNode("n2", actors: [IoActor("a"), IoActor("b")]))
    }

    private static func wait(_ condition: @escaping @ControllerActor @Sendable () -> Bool) async throws {
        try await withPatience { while await !condition() { try await Task.sleep(for: .milliseconds(2)) } }
    }

    /// The events of a router's agent, without its identity, as event types.
    private func events(_ scene: Scene, by container: Container) -> [String] {
        let id = container.communicationManager.identityId.string
        return scene.broker.published.map { $0.topic.split(separator: "/").map(String.init) }
            .filter { $0.count > 4 && $0[4] == id && !$0[3].contains("Identity") }.map { $0[3] }
            .filter { $0.hasPrefix("ADV") || $0.hasPrefix("ASC") || $0.hasPrefix("RSV") || $0.hasPrefix("CPL") }
    }

    @Test func aSilentRouterDecidesAndPublishesNothing() async throws {
        var scene = try await Scene(options: ["rules": [Self.all]])
        let (container, router) = try await startSilent(scene, associations: 2)
        #expect(try await scene.news() == ["s>a", "s>b"])
        let answers = Recorder<ResolveEvent>()
        let request = try scene.others.publish(DiscoverEvent.with(coreTypes: [.IoContext])) { answers.append($0) }
        #expect(try await answers.wait(for: 1).map(\.sourceId) == [scene.id])
        try scene.deadvertise("n1")
        #expect(try await scene.news() == ["-s>a", "-s>b"])
        try await Self.wait { router.associations.isEmpty }
        #expect(router.reported == 4)
        await container.shutdown()
        #expect(events(scene, by: container) == [])
        request.cancel()
        await scene.end()
    }

    @Test func aSilentRouterTakesOverWithoutDissolving() async throws {
        let scene = try await Scene(options: ["rules": [Self.all]])
        let (container, router) = try await startSilent(scene, associations: 2)
        _ = try await scene.waitForNews(2)
        scene.router.successors = [container.communicationManager.identityId]
        await scene.container.shutdown()
        await router.speak()
        #expect(try await scene.waitForNews(4).dropFirst(2) == ["s>a", "s>b"])
        #expect(events(scene, by: container).contains("ADV:IoContext"))
        #expect(router.ioContext?.parentObjectId == container.communicationManager.identityId)
        // Now it dissolves them.
        await container.shutdown()
        #expect(try await scene.waitForNews(6).dropFirst(4) == ["-s>a", "-s>b"])
        await scene.others.stop()
    }

    @Test func aSilentRouterDissolvesNothingWhenItStops() async throws {
        let scene = try await Scene(options: ["rules": [Self.all]])
        let (container, router) = try await startSilent(scene, associations: 2)
        _ = try await scene.waitForNews(2)
        scene.router.successors = [container.communicationManager.identityId]
        await scene.container.shutdown()
        try await Self.wait { router.otherRouters.isEmpty }
        await container.shutdown()
        #expect(events(scene, by: container) == [])
        await scene.others.stop()
    }

    @Test func aTakeoverDissolvesWhatTheOtherRouterHasLeft() async throws {
        let scene = try await Scene(options: ["rules": [Self.all]])
        let (container, router) = try await startSilent(scene, associations: 2)
        _ = try await scene.waitForNews(2)
        scene.router.successors = [container.communicationManager.identityId]
        await scene.container.shutdown()
        // Nobody speaks: the actor's node is changed.
        try scene.advertise(IoNode("n2", actors: [IoActor("a")]))
        try await Self.wait { router.associations.count == 1 }
        // An association between unknown IO points may belong to nodes that are not discovered yet.
        scene.broker.publish(
            topic: "coaty/3/-/ASC:ctx/other",
            payload: Array(#"{"ioSourceId":"x","ioActorId":"y","associatingRoute":"coaty/3/-/IOV/x"}"#.utf8)
        )
        _ = try await scene.waitForNews(3)
        await router.speak()
        #expect(try await scene.waitForNews(5).dropFirst(3) == ["-s>b", "s>a"])
        await container.shutdown()
        await scene.others.stop()
    }

    @Test func aRouterThatFallsSilentStaysSilentAfterAReconnect() async throws {
        let scene = try await Scene(options: ["rules": [Self.all]])
        try Self.advertise(scene)
        _ = try await scene.waitForNews(2)
        await scene.router.fallSilent(publishing: true)
        let before = scene.broker.published.count
        let period = try #require(scene.container.communicationManager.onlinePeriod)
        scene.broker.setAvailable(false)
        scene.broker.setAvailable(true)
        try await Self.wait { scene.container.communicationManager.onlinePeriod ?? 0 > period }
        try await scene.others.untilOnline()
        try Self.advertise(scene)
        try await Self.wait { scene.router.managedIoNodes.count == 2 }
        let events = scene.broker.published.dropFirst(before).map(\.topic)
        #expect(!events.contains { $0.contains("IoContext/\(scene.id)") || $0.contains("ASC:") })
        await scene.end()
    }

    @Test func theStateOfAnotherRouterIsAdopted() async throws {
        let scene = try await Scene(options: ["rules": [Self.all]])
        let (container, router) = try await startSilent(scene, associations: 2)
        let json = try #require(scene.router.ioContextJSON)
        let context = try #require(try PayloadCoder.object(json) as? IoContext)
        let rule = #"[{"name":"a","condition":["actor.name",["Equals","a"]]}]"#
        let rules = try IoAssociationRule.rules(JSONDocument(Array(rule.utf8)).root)
        let changes = await router.follow(context, json, rules)
        #expect(changes?.removed == [IoAssociation(ioSourceId: "s", ioActorId: "b")])
        #expect(router.ioContextJSON.map { Array($0.bytes) } == Array(json.bytes))
        #expect(router.rules.map(\.name) == ["a"])
        await container.shutdown()
        await scene.end()
    }
}
