import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Limits on the work of a router's rules.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct RoutingWorkTests {
    /// A text whose comparison takes some thousand steps.
    private static let text = String(repeating: "x", count: 60_000)
    private static let longText = String(repeating: "x", count: 120_000)

    private static func node(
        _ id: String,
        sources: Int = 0,
        actors: Int = 0,
        text: String = "x"
    ) throws -> (node: IoNode, json: JSONView) {
        func points(_ coreType: String, _ count: Int) -> String {
            (0..<count).map {
                #"{"coreType":"\#(coreType)","objectType":"coaty.\#(coreType)","objectId":"\#(id)-\#($0)","name":"n\#($0)","valueType":"v"}"#
            }
            .joined(separator: ",")
        }
        let json =
            #"{"coreType":"IoNode","objectType":"coaty.IoNode","objectId":"\#(id)","name":"ctx","ioSources":["#
            + points("IoSource", sources) + #"],"ioActors":["# + points("IoActor", actors)
            + #"],"characteristics":{"text":"\#(text)"}}"#
        let view = try JSONDocument(Array(json.utf8)).root
        return (try #require(try PayloadCoder.object(view) as? IoNode), view)
    }

    private static func rules(_ conditions: String...) throws -> IoAssociationRules {
        let list = conditions.enumerated().map { #"{"name":"\#($0.offset)","condition":\#($0.element)}"# }
        return IoAssociationRules(
            try IoAssociationRule.rules(JSONDocument(Array("[\(list.joined(separator: ","))]".utf8)).root)
        )
    }

    private static func verdicts(_ rules: IoAssociationRules) throws -> IoRoutingTable.Verdicts {
        let context = IoContext.test()
        let router = try Container.resolve(
            components: Components(controllers: ["router": RuleBasedIoRouter.self]),
            configuration: Configuration(
                communication: CommunicationOptions { _ in TopicBinding(broker: TopicBroker()) },
                controllers: ControllerConfig(controllerOptions: ["router": ControllerOptions(extra: [:])])
            )
        )
        let contextJSON = try JSONDocument(encoding: context).root
        return IoRoutingDecision(
            rules: rules,
            context: context,
            contextJSON: contextJSON,
            router: try #require(router.getController(name: "router"))
        ).verdicts
    }

    private static func table(steps: Int = RoutingWork.stepsPerRun) -> IoRoutingTable {
        IoRoutingTable(stepsPerRun: steps) { sourceId, _ in sourceId.string }
    }

    private static let samePair =
        #"["actorNode.characteristics.text",["Equals",{"property":"sourceNode.characteristics.text"}]]"#

    @Test func conditionsOnOneObjectAreEvaluatedOnce() async throws {
        // Each rule takes some thousand steps. Evaluated for each pair, they would take many millions.
        let rules = try Self.rules(
            #"["actorNode.characteristics.text",["Equals","\#(Self.text)y"]]"#,
            #"["sourceNode.characteristics.text",["Equals","\#(Self.text)z"]]"#,
            #"{"and":[["source.name",["Equals","n7"]],{"not":["actor.name",["In",["n0","n1"]]]}]}"#
        )
        let (node, json) = try Self.node("n", sources: 50, actors: 50, text: Self.text)
        var table = Self.table(steps: 1_000_000)
        let changes = try await table.take(node, json: json, Self.verdicts(rules))
        #expect(changes.added.count == 48 && changes.added.allSatisfy { $0.ioSourceId.string == "n-7" })
        #expect(table.excess == nil)
    }

    @Test func pairsThatTakeTooMuchWorkAreNotAssociated() async throws {
        let rules = try Self.rules(Self.samePair, #"["actor.name",["Equals","n1"]]"#)
        let verdicts = try Self.verdicts(rules)
        var table = Self.table()
        let (sources, sourcesJSON) = try Self.node("s", sources: 2, text: Self.longText)
        let (actors, actorsJSON) = try Self.node("a", actors: 2, text: Self.longText)
        _ = try await table.take(sources, json: sourcesJSON, verdicts)
        #expect(table.excess == nil)
        let changes = try await table.take(actors, json: actorsJSON, verdicts)
        // The other rule would hold for one actor, but both rules share the budget.
        #expect(changes.isEmpty)
        let excess = try #require(table.excess)
        #expect(!excess.isOfRun && excess.ioSourceId.string == "s-0" && excess.ioActorId.string == "a-0")
        let current = table
        await #expect(throws: RoutingExcess.self) { try await current.preview(verdicts) }
        // A newer version of the node has fewer points.
        let (smaller, smallerJSON) = try Self.node("a", actors: 2)
        _ = try await table.take(smaller, json: smallerJSON, verdicts)
        #expect(table.excess == nil && table.associationCount == 2)
    }

    @Test func aNodeThatTakesTooMuchWorkIsRefused() async throws {
        let verdicts = try Self.verdicts(Self.rules(Self.samePair))
        var table = Self.table(steps: 20_000)
        let (sources, sourcesJSON) = try Self.node("s", sources: 2, text: Self.text)
        let (small, smallJSON) = try Self.node("a", actors: 2)
        let (large, largeJSON) = try Self.node("a", actors: 10, text: Self.text)
        _ = try await table.take(sources, json: sourcesJSON, verdicts)
        _ = try await table.take(small, json: smallJSON, verdicts)
        var copy = table
        await #expect(throws: IoRoutingTable.Refusal.tooMuchWork) {
            try await copy.take(large, json: largeJSON, verdicts)
        }
        // Other nodes keep their associations, also after all pairs have been decided again.
        #expect(try await table.evaluate(verdicts).isEmpty && table.excess == nil)
    }

    @Test func closuresAndConditionsShareTheBudgetOfAPair() async throws {
        let conditions = try Self.rules(Self.samePair, Self.samePair).all
        let closure = IoAssociationRule(name: "closure") { _, _, actor, _, _, _ in actor.name == "n1" }
        let verdicts = try Self.verdicts(IoAssociationRules(conditions + [closure]))
        var table = Self.table()
        let (node, json) = try Self.node("n", sources: 1, actors: 2, text: Self.longText)
        let changes = try await table.take(node, json: json, verdicts)
        #expect(changes.added.map(\.ioActorId.string) == ["n-1"])
        #expect(table.excess?.ioActorId.string == "n-0")
    }

    @Test func cancellationEndsARunWithinABatch() async throws {
        let (node, json) = try Self.node("n", sources: 1, actors: 1, text: Self.text)
        let rules = try Self.rules(#"["actorNode.characteristics.text",["Like","%y"]]"#)
        let conditions = try #require(rules.candidates(for: WireName("v")).conditions)
        let member = RoutingMember(node, json: json, arrival: 0)
        let (source, actor) = (try #require(member.sources.first), try #require(member.actors.first))
        let judging = Task {
            var work = RoutingWork(steps: RoutingWork.stepsPerRun, pairCount: 1)
            _ = try work.judge(source, actor, by: conditions, in: json)
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try work.judge(source, actor, by: conditions, in: json)
        }
        await #expect(throws: CancellationError.self) { try await judging.value }
    }
}
