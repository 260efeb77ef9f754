import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Nodes that join, change and leave, with a router that associates all compatible points.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(3))) struct BasicIoRouterTests {
    private typealias Scene = RouterScene<BasicIoRouter>

    @Test func routerReportsTheLargestRateToAllActors() async throws {
        var scene = try await Scene()
        try scene.advertise(
            IoNode("n1", sources: [IoSource("s1", rate: 100), IoSource("s2")]),
            IoNode("n2", actors: [IoActor("a1", rate: 50)])
        )
        #expect(try await scene.news() == ["s1>a1 100", "s2>a1 50"])
        try scene.advertise(IoNode("n3", actors: [IoActor("a2", rate: 300)]))
        // Associate events for the new pairs and for the changed rate, each once.
        #expect(try await Set(scene.news()) == ["s1>a2 300", "s1>a1 300", "s2>a2 300", "s2>a1 300"])
        try scene.advertise(IoNode("n4", actors: [IoActor("a3", rate: 200)]))
        #expect(try await scene.news() == ["s1>a3 300", "s2>a3 300"])
        try scene.deadvertise("n3")
        #expect(
            try await scene.news() == ["-s1>a2", "-s2>a2", "s1>a1 200", "s1>a3 200", "s2>a1 200", "s2>a3 200"]
        )
        try scene.advertise(IoNode("n2", actors: [IoActor("a1", rate: 200)]))
        #expect(try await scene.news() == [], "the largest rate is unchanged")
        try scene.deadvertise("n4")
        try scene.advertise(IoNode("n2", actors: [IoActor("a1")]))
        let news = try await scene.news()
        #expect(news.last == "s2>a1" && news.contains("s1>a1 100"), "no rate if no point has one")
        await scene.end()
    }

    @Test func routeIsKeptUntilItsNodeLeaves() async throws {
        var scene = try await Scene()
        try scene.advertise(
            IoNode("n1", sources: [IoSource("s1", route: "plant/1")]),
            IoNode("n2", actors: [IoActor("a1")])
        )
        #expect(try await scene.news() == ["s1>a1 plant/1"])
        try scene.advertise(IoNode("n1", sources: [IoSource("s1", route: "plant/2")]))
        #expect(try await scene.news() == [])
        try scene.advertise(IoNode("n1", sources: [IoSource("s1", rate: 5)]))
        #expect(try await scene.news() == ["s1>a1 5 plant/1"])
        try scene.deadvertise("n1")
        try scene.advertise(IoNode("n1", sources: [IoSource("s1", route: "plant/2")]))
        #expect(try await scene.news() == ["-s1>a1", "s1>a1 plant/2"])
        await scene.end()
    }

    @Test(arguments: ["", "plant/#", "plant/+/1", "coaty/3/-/DAD/x", "a\u{0}b"])
    func invalidExternalRouteIsReplaced(route: String) async throws {
        var scene = try await Scene()
        try scene.advertise(IoNode("n1", sources: [IoSource("s1", route: route)], actors: [IoActor("a1")]))
        #expect(try await scene.news() == ["s1>a1"])
        await scene.end()
    }

    @Test func associatesOnlyMatchingTypesAndFormats() async throws {
        var scene = try await Scene()
        try scene.advertise(
            IoNode("n1", sources: [IoSource("json"), IoSource("raw", isRaw: true), IoSource("other", of: "V")]),
            IoNode("n2", actors: [IoActor("a-json", isRaw: false), IoActor("a-raw", isRaw: true)])
        )
        #expect(try await scene.news() == ["json>a-json", "raw>a-raw"])
        try scene.advertise(IoNode("n2", actors: [IoActor("a-json", isRaw: true), IoActor("a-raw", of: "V")]))
        #expect(
            try await Set(scene.news()) == ["-json>a-json", "-raw>a-raw", "raw>a-json", "other>a-raw"]
        )
        await scene.end()
    }

    @Test func nodeWithoutPointsOrOfAnotherContextIsRemoved() async throws {
        var scene = try await Scene()
        func reset(_ scene: inout Scene, isFirst: Bool) async throws {
            try scene.advertise(IoNode("n1", sources: [IoSource("s1")]), IoNode("n2", actors: [IoActor("a1")]))
            // The agents of both may have missed that it was dissolved.
            #expect(try await scene.news() == (isFirst ? ["s1>a1"] : ["-s1>a1", "s1>a1"]))
            #expect(scene.router.managedIoNodes.map(\.objectId) == ["n1", "n2"])
            #expect(scene.router.associations == [IoAssociation(ioSourceId: "s1", ioActorId: "a1")])
        }
        let nodes = [
            IoNode("n2"), IoNode("n2", actors: [IoActor("a1")], context: "another"), IoNode("n2", context: "another"),
        ]
        for (index, node) in nodes.enumerated() {
            try await reset(&scene, isFirst: index == 0)
            try scene.advertise(node)
            #expect(try await scene.news() == ["-s1>a1"])
            #expect(scene.router.findManagedIoNode { $0.objectId == "n2" } == nil)
            try scene.deadvertise("n1")
            #expect(try await scene.news() == [])
        }
        await scene.end()
    }

    @Test func associationsAreRepublishedWhenNodeChangesAgent() async throws {
        var scene = try await Scene()
        try scene.advertise(IoNode("n1", sources: [IoSource("s1")]), IoNode("n2", actors: [IoActor("a1")]))
        #expect(try await scene.news() == ["s1>a1"])
        try scene.advertise(IoNode("n2", actors: [IoActor("a1")], agent: "another"))
        #expect(try await scene.news() == ["-s1>a1", "s1>a1"])
        await scene.end()
    }

    @Test func pointBelongsToTheFirstNode() async throws {
        var scene = try await Scene()
        try scene.advertise(
            IoNode("n1", sources: [IoSource("s1", of: "x")]),
            IoNode("n2", sources: [IoSource("s1", of: "y")]),
            IoNode("n3", actors: [IoActor("a1", of: "x"), IoActor("a2", of: "y")])
        )
        #expect(try await scene.news() == ["s1>a1"])
        try scene.deadvertise("n1")
        #expect(try await scene.news() == ["-s1>a1", "s1>a2"])
        try scene.advertise(IoNode("n1", sources: [IoSource("s1", of: "x")]))
        #expect(try await scene.news() == ["-s1>a1"], "it has joined last, and may have missed this")
        #expect(scene.router.associations.map(\.ioActorId) == ["a2"])
        await scene.end()
    }

    @Test func routesTwoContextsInOneContainer() async throws {
        let broker = TopicBroker()
        let (first, second) = (IoContext.test(), IoContext.test(name: "ctx 2", id: "ctx-id-2"))
        var scene = try await Scene(context: first, broker: broker)
        try scene.container.registerController(
            name: "router 2",
            controllerType: BasicIoRouter.self,
            controllerOptions: ControllerOptions(extra: ["ioContext": second])
        )
        let other: BasicIoRouter = try #require(scene.container.getController(name: "router 2"))
        // One agent with a node in each of the two contexts.
        try scene.advertise(
            IoNode("n1", sources: [IoSource("s1")], actors: [IoActor("a1")]),
            IoNode("n2", sources: [IoSource("s2")], actors: [IoActor("a2")], context: "ctx 2")
        )
        #expect(try await scene.news() == ["s1>a1"])
        let topic = "coaty/3/-/ASC:ctx 2/\(scene.id)"
        _ = try await broker.waitForMessages { $0.contains { $0.topic == topic } }
        #expect(other.associations == [IoAssociation(ioSourceId: "s2", ioActorId: "a2")])
        #expect(scene.router.associations == [IoAssociation(ioSourceId: "s1", ioActorId: "a1")])
        #expect(scene.router.otherRouters.isEmpty && other.otherRouters.isEmpty)
        try scene.deadvertise("agent", "n1", "n2")
        #expect(try await scene.news() == ["-s1>a1"])
        await scene.end()
        #expect(other.associations.isEmpty)
    }

    @Test func nodesAndPointsBeyondTheLimitsAreRefused() async throws {
        var table = IoRoutingTable { sourceId, route in route ?? "coaty/3/-/IOV/\(sourceId)" }
        let all: IoRoutingTable.Verdicts = { _ in .constant(true) }
        func take(_ node: IoNode) async throws -> IoAssociationChanges {
            // Only empty points, because there are many.
            let points = [node.ioSources.count, node.ioActors.count].map {
                "[\(Array(repeating: "{}", count: $0).joined(separator: ","))]"
            }
            let json = #"{"ioSources":\#(points[0]),"ioActors":\#(points[1])}"#
            return try await table.take(node, json: JSONDocument(Array(json.utf8)).root, all)
        }
        _ = try await take(
            IoNode("many", actors: (0..<(IoRouter.maximumPoints - 2)).map { IoActor("a\($0)", of: "w") })
        )
        await #expect(throws: IoRoutingTable.Refusal.tooManyPoints) {
            try await take(IoNode("n", actors: ["x", "y", "z"].map { IoActor($0) }))
        }
        #expect(try await take(IoNode("n", sources: [IoSource("x")], actors: [IoActor("x")])).added.count == 1)
        await #expect(throws: IoRoutingTable.Refusal.tooManyPoints) {
            try await take(IoNode("n", actors: ["x", "y", "z"].map { IoActor($0) }))
        }
        _ = try await table.remove("many", all)
        for index in 1..<IoRouter.maximumNodes {
            _ = try await take(IoNode("n\(index)", sources: [IoSource(index == 1 ? "x" : "y\(index)", of: "\(index)")]))
        }
        await #expect(throws: IoRoutingTable.Refusal.tooManyNodes) {
            try await take(IoNode("m", sources: [IoSource("y")]))
        }
        #expect(
            try await take(IoNode("n", actors: [IoActor("x")])).removed.count == 1,
            "a newer version of a node"
        )
        #expect(table.nodes.count == IoRouter.maximumNodes)
    }
}
