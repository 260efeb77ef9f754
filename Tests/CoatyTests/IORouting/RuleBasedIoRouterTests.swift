import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct RuleBasedIoRouterTests {
    private typealias Scene = RouterScene<RuleBasedIoRouter>

    private static let responsible =
        #"["actorNode.characteristics.state", ["Equals", {"property": "context.operatingState"}]]"#
    private static let never = #"["source.name", ["NotExists"]]"#
    private static let always = #"["source.name", ["Exists"]]"#

    private static func rules(_ rules: (valueType: String?, condition: String)...) throws -> [IoAssociationRule] {
        let texts = rules.enumerated().map { index, rule in
            let valueType = rule.valueType.map { #""valueType":"\#($0)","# } ?? ""
            return #"{"name":"rule \#(index)",\#(valueType)"condition":\#(rule.condition)}"#
        }
        return try IoAssociationRule.rules(JSONDocument(Array("[\(texts.joined(separator: ","))]".utf8)).root)
    }

    /// Advertises a source of `v`, a source of `w`, and an actor of each for both states.
    private static func advertise(_ scene: Scene) throws {
        try scene.advertise(
            IoNode("n1", sources: [IoSource("v"), IoSource("w", of: "w")]),
            IoNode("n2", actors: [IoActor("vn"), IoActor("wn", of: "w")], state: "normal"),
            IoNode("n3", actors: [IoActor("ve"), IoActor("we", of: "w")], state: "emergency")
        )
    }

    @Test func associatesNothingWithoutRules() async throws {
        var scene = try await Scene()
        try Self.advertise(scene)
        #expect(try await scene.news() == [])
        await scene.end()
    }

    @Test(arguments: [nil, ""] as [String?])
    func globalRulesApplyToTypesWithoutRules(global: String?) async throws {
        let rules = try Self.rules((global, Self.always), ("v", Self.never), ("v", Self.responsible))
        var scene = try await Scene(options: ["rules": rules])
        try Self.advertise(scene)
        #expect(
            try await scene.news() == ["v>vn", "w>wn", "w>we"],
            "one that holds not does not bring back the global ones"
        )
        scene.router.rules = try Self.rules((global, Self.always), ("v", Self.never))
        #expect(try await scene.news() == ["-v>vn"])
        scene.router.rules = try Self.rules((global, Self.always))
        #expect(try await scene.news() == ["v>vn", "v>ve"])
        await scene.end()
    }

    @Test func closuresAreEvaluatedUntilOneHolds() async throws {
        let asked = Recorder<String>()
        func rule(_ name: String, _ verdict: Bool) -> IoAssociationRule {
            IoAssociationRule(name: name, valueType: "v") { source, sourceNode, actor, actorNode, context, router in
                asked.append(
                    "\(name) \(source.name) \(sourceNode.objectId) \(actor.name) \(actorNode.objectId)"
                        + " \(context.name) \(router.registeredName)"
                )
                return verdict
            }
        }
        var scene = try await Scene(options: ["rules": [rule("A", false), rule("B", true), rule("C", true)]])
        try scene.advertise(IoNode("n1", sources: [IoSource("s")]), IoNode("n2", actors: [IoActor("a")]))
        #expect(try await scene.news() == ["s>a"])
        let expected = ["A s n1 a n2 ctx router", "B s n1 a n2 ctx router"]
        #expect(Array(asked.values.prefix(2)) == expected)
        #expect(!asked.values.contains { $0.hasPrefix("C") })
        await scene.end()
    }

    @Test func contextUpdateMovesAssociationsThenCompletes() async throws {
        let rules = try Self.rules((nil, Self.responsible))
        var scene = try await Scene(options: ["rules": rules])
        try Self.advertise(scene)
        #expect(try await scene.news() == ["v>vn", "w>wn"])
        let before = scene.broker.published.count
        try await scene.update(.test(state: "emergency"))
        let own = scene.broker.published[before...].map(\.topic).filter { $0.contains(scene.id.string) }
        #expect(
            own.dropLast().map { $0.split(separator: "/")[3] } == [
                "ADV:IoContext", "ADV::com.example.Context", "ASC:ctx", "ASC:ctx", "ASC:ctx", "ASC:ctx",
            ]
        )
        #expect(own.last?.hasPrefix("coaty/3/-/CPL/\(scene.id)/") == true)
        #expect(try await scene.news() == ["-v>vn", "-w>wn", "v>ve", "w>we"])
        #expect(scene.router.ioContext?.parentObjectId == scene.id)
        #expect(scene.router.ioContext?.custom["operatingState"] == "emergency")
        await scene.end()
    }

    @Test func previewReturnsTheChangesWithoutMakingThem() async throws {
        let rules = try Self.rules((nil, Self.responsible))
        var scene = try await Scene(options: ["rules": rules])
        try Self.advertise(scene)
        #expect(try await scene.news() == ["v>vn", "w>wn"])
        let associations = scene.router.associations
        let other = try Self.rules((nil, Self.responsible), ("w", Self.always))

        let forContext = try await scene.router.preview(ioContext: .test(state: "emergency"))
        let forRules = try await scene.router.preview(rules: other)
        let forBoth = try await scene.router.preview(ioContext: .test(state: "emergency"), rules: other)
        #expect(try await scene.router.preview().isEmpty)
        #expect(forContext.added.count == 2 && forContext.removed.count == 2)
        #expect(forBoth.added.count == 2 && forBoth.removed.count == 1)
        #expect(try await scene.news() == [], "no association changed")
        #expect(scene.router.associations == associations)
        #expect(scene.router.rules.count == 1 && scene.router.ioContext?.custom["operatingState"] == "normal")

        #expect(await scene.router.replaceRules(other) == forRules)
        #expect(try await scene.news() == ["w>we"])
        scene.router.rules = rules
        try await scene.update(.test(state: "emergency"))
        #expect(Set(scene.router.associations) == Set(forContext.added))
        await scene.end()
    }

    @Test func closuresAndFiltersReplaceEachOther() async throws {
        var scene = try await Scene()
        try Self.advertise(scene)
        #expect(try await scene.news() == [])
        let closure = IoAssociationRule(name: "closure") { source, _, actor, _, _, _ in
            source.name == "v" && actor.name == "ve"
        }
        #expect(await scene.router.replaceRules([closure]).added == [IoAssociation(ioSourceId: "v", ioActorId: "ve")])
        #expect(await scene.router.replaceRules([closure]).isEmpty)
        let filters = try Self.rules(("v", Self.responsible))
        let changes = await scene.router.replaceRules([closure] + filters)
        #expect(changes.added == [IoAssociation(ioSourceId: "v", ioActorId: "vn")])
        #expect(changes.removed == [IoAssociation(ioSourceId: "v", ioActorId: "ve")])
        #expect(scene.router.rules.map(\.name) == ["closure", "rule 0"])
        #expect(await scene.router.replaceRules([]).removed.count == 1)
        #expect(try await scene.news() == ["v>ve", "-v>ve", "v>vn", "-v>vn"])
        await scene.end()
    }

    /// A router that records the changes that it receives.
    private final class Hooked: RuleBasedIoRouter {
        var calls: [String] = []

        override func onIoContextUpdated(
            by event: UpdateEvent,
            from previous: IoContext,
            changes: IoAssociationChanges
        ) {
            let states = [previous, ioContext].map { $0?.custom["operatingState"] ?? "none" }
            calls.append("updated \(states) +\(changes.added.count) -\(changes.removed.count)")
        }

        override func onAssociationsChanged(_ changes: IoAssociationChanges) {
            calls.append("changed +\(changes.added.count) -\(changes.removed.count) ~\(changes.changed.count)")
        }
    }

    @Test func subclassIsNotifiedOfChanges() async throws {
        let rules = try Self.rules((nil, Self.responsible))
        let scene = try await RouterScene<Hooked>(options: ["rules": rules])
        try scene.advertise(
            IoNode("n1", sources: [IoSource("v")], actors: [IoActor("vn")], state: "normal"),
            IoNode("n3", actors: [IoActor("ve")], state: "emergency")
        )
        try await scene.update(.test(state: "emergency"))
        try await scene.update(.test(state: "emergency"))
        try scene.advertise(IoNode("n3", actors: [IoActor("ve", rate: 5)], state: "emergency"))
        try await scene.update(.test(state: "off"))
        let states = { (old: String, new: String) in "\([old, new].map { AnyCodable.string($0) })" }
        #expect(
            scene.router.calls == [
                "changed +1 -0 ~0",
                "changed +1 -1 ~0", "updated \(states("normal", "emergency")) +1 -1",
                "updated \(states("emergency", "emergency")) +0 -0",
                "changed +0 -0 ~1",
                "changed +0 -1 ~0", "updated \(states("emergency", "off")) +0 -1",
            ]
        )
        await scene.end()
    }
}
