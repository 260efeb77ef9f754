import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// What a router publishes again when agents, or the router itself, return: they keep the associations that they had.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct ReturningAgentsTests {
    private typealias Scene = RouterScene<RuleBasedIoRouter>

    private static func rules(_ actor: String) throws -> [IoAssociationRule] {
        let text = #"[{"name":"to \#(actor)","condition":["actor.name",["Equals","\#(actor)"]]}]"#
        return try IoAssociationRule.rules(JSONDocument(Array(text.utf8)).root)
    }

    private static let sourceNode = { IoNode("n1", sources: [IoSource("s")], agent: "agent 1") }
    private static let actorNode = { IoNode("n2", actors: [IoActor("a"), IoActor("b")], agent: "agent 2") }
    private static let otherNode = {
        IoNode("n3", sources: [IoSource("t", of: "w")], actors: [IoActor("c", of: "w")], agent: "agent 3")
    }

    /// A router that associates `s` with `a`, and its nodes.
    private func start() async throws -> Scene {
        var scene = try await Scene(options: ["rules": try Self.rules("a")])
        try scene.advertise(Self.sourceNode(), Self.actorNode(), Self.otherNode())
        #expect(try await scene.news() == ["s>a"])
        return scene
    }

    private func wait(_ condition: @escaping @ControllerActor @Sendable () -> Bool) async throws {
        try await withPatience { while await !condition() { try await Task.sleep(for: .milliseconds(2)) } }
    }

    @Test func dissolutionsDuringTheAbsenceOfASourceArePublishedWhenItReturns() async throws {
        var scene = try await start()
        // The will of the source's agent.
        try scene.deadvertise("agent 1", "n1")
        #expect(try await scene.news() == ["-s>a"])
        await scene.router.replaceRules(try Self.rules("b"))
        #expect(try await scene.news() == [])
        try scene.advertise(Self.sourceNode())
        #expect(try await scene.news() == ["-s>a", "s>b"])
        // The actor's agent may have been away too.
        try scene.deadvertise("agent 2", "n2")
        #expect(try await scene.news() == ["-s>b"])
        try scene.advertise(Self.actorNode())
        #expect(try await scene.news() == ["-s>a", "s>b"])
        // When the pair is associated again, its former end has no meaning.
        await scene.router.replaceRules(try Self.rules("a"))
        #expect(try await scene.news() == ["-s>b", "s>a"])
        try scene.deadvertise("n1")
        try scene.advertise(Self.sourceNode())
        #expect(Set(try await scene.news()) == ["-s>a", "-s>b", "s>a"])
        #expect(scene.router.associations.map(\.ioActorId) == ["a"])
        await scene.end()
    }

    @Test func aNodeThatIsAdvertisedUnchangedGetsTheAssociationsOfItsPoints() async throws {
        var scene = try await start()
        await scene.router.replaceRules(try Self.rules("b") + Self.rules("c"))
        #expect(try await scene.news().sorted() == ["-s>a", "s>b", "t>c"])
        // The will of an agent is not published if its broker node fails together with its connection.
        try scene.advertise(Self.sourceNode())
        #expect(try await scene.news() == ["-s>a", "s>b"])
        try scene.advertise(Self.otherNode())
        #expect(try await scene.news() == ["t>c"])
        // A changed node is an update by an agent that is online.
        try scene.advertise(IoNode("n1", sources: [IoSource("s", rate: 7)], agent: "agent 1"))
        #expect(try await scene.news() == ["s>b 7"])
        await scene.end()
    }

    @Test func discoveredNodesGetNothing() async throws {
        var scene = try await start()
        let answered = Recorder<Void>()
        let answering = scene.others.subscribe(.discover) { event in
            guard event.data.isCoreTypeCompatible(.IoNode) else { return }
            _ = try? event.resolve(.with(object: IoNode("n1", sources: [IoSource("s")], agent: "agent 1")))
            answered.append(())
        }
        // The router looks for the nodes of each agent that appears.
        scene.broker.publish(
            topic: "coaty/3/-/ADV:Identity/new",
            payload: Array(
                #"{"object":{"objectId":"new","coreType":"Identity","objectType":"coaty.Identity","name":"n"}}"#.utf8
            )
        )
        _ = try await answered.wait(for: 1)
        #expect(try await scene.news() == [])
        answering.cancel()
        await scene.end()
    }

    @Test func afterAnAbsenceOfTheRouterEachNodeGetsWhatItMissed() async throws {
        var scene = try await start()
        let router = scene.router
        let manager = scene.container.communicationManager
        let period = try #require(manager.onlinePeriod)
        scene.broker.setAvailable(false)
        try await wait { !manager.isOnline }
        // The first ones to connect get these changes, and nobody else.
        await router.replaceRules(try Self.rules("b") + Self.rules("c"))
        scene.broker.setAvailable(true)
        try await scene.others.untilOnline()
        try await wait { manager.onlinePeriod ?? 0 > period && router.unconfirmed.count == 3 }
        _ = try await scene.news()
        // The other node of the association is still unconfirmed: its own return publishes it.
        try scene.advertise(Self.sourceNode())
        #expect(try await scene.news() == ["-s>a"])
        try scene.advertise(Self.actorNode())
        #expect(try await scene.news() == ["-s>a", "s>b"])
        #expect(router.unconfirmed == ["n3"])
        try scene.advertise(Self.otherNode())
        #expect(try await scene.news() == ["t>c"])
        await scene.end()
    }

    @Test func offersFromBeforeAReconnectDoNotConfirmANode() throws {
        let inbox = IoRouterInbox(ioContextName: "ctx")
        let node = try AdvertiseEvent.with(object: Self.sourceNode()).payload
        #expect(inbox.offer(node, isAdvertised: true))
        inbox.online(2)
        #expect(inbox.take().nodes["n1"]?.isFormer == true)
        #expect(inbox.offer(node, isAdvertised: true))
        inbox.online(3)
        #expect(inbox.offer(node, isAdvertised: false))
        #expect(inbox.take().nodes["n1"]?.isFormer == false)
    }

    @Test func aRouterThatWasSilentRemembersWhatTheOtherOneDissolved() async throws {
        var scene = try await Scene(options: ["rules": try Self.rules("a")])
        await scene.router.fallSilent(publishing: true)
        try scene.advertise(Self.sourceNode(), Self.actorNode())
        let router = scene.router
        try await wait { router.associations.count == 1 }
        try scene.deadvertise("n1")
        try await wait { router.associations.isEmpty }
        await router.replaceRules(try Self.rules("b"))
        await router.speak()
        #expect(try await scene.news() == [])
        try scene.advertise(Self.sourceNode())
        #expect(try await scene.news() == ["-s>a", "s>b"])
        await scene.end()
    }
}
