import Coaty
import Foundation
import Logging
import RoutingReference

/// Measures the time to decide on the associations of an IO context, compared with a router that decides on all pairs
/// each time. The time to read a node and to publish the changes is not included.
@ControllerActor
final class RoutingBench {
    /// The number of nodes that change in a round; a single change is too short to be measured.
    static let nodesPerRound = 100

    /// A step with the milliseconds of each round.
    struct Measured: Encodable {
        let name: String
        var changes = 0
        var own: [Double] = []
        var naive: [Double] = []
    }

    private let network: Network
    private let rules: IoAssociationRules
    private let router: RuleBasedIoRouter
    private let clock = ContinuousClock()
    private var context: JSONView
    private var table = IoRoutingTable { sourceId, _ in sourceId.string }
    private var naive: NaiveRouter

    static func run(size: Int, rounds: Int) async throws -> [Measured] {
        let network = try Network(size: size)
        var steps: [Measured] = []
        for round in 0..<rounds {
            for (index, measured) in try await RoutingBench(network).measure(round).enumerated() {
                if round == 0 {
                    steps.append(measured)
                } else {
                    steps[index].own += measured.own
                    steps[index].naive += measured.naive
                }
            }
        }
        return steps
    }

    private init(_ network: Network) throws {
        self.network = network
        rules = IoAssociationRules(network.rules)
        context = try Network.context(isEmergency: false, remark: 0)
        naive = NaiveRouter(rules: network.rules, context: context)
        // Only closures in rules use the router; these rules have none.
        let container = try Container.resolve(
            components: Components(controllers: ["router": RuleBasedIoRouter.self]),
            configuration: Configuration(
                communication: CommunicationOptions { _ in InMemoryBinding(broker: InMemoryBroker()) }
            ),
            logger: Logger(label: "routing-bench") { _ in SwiftLogNoOpLogHandler() }
        )
        guard let router: RuleBasedIoRouter = container.getController(name: "router") else { exit(1) }
        self.router = router
    }

    private func measure(_ round: Int) async throws -> [Measured] {
        for node in network.nodes {
            _ = try await change { try await $0.take(node.node, json: node.json) { _ in .constant(false) } }
            naive.take(node.node, json: node.json)
        }
        let verdicts = verdicts
        return [
            try await step("all, from nothing") { try await $0.evaluate(verdicts) },
            try await step("all, nothing changes") { try await $0.evaluate(verdicts) },
            try await changeNodes("one actor's node", round) {
                try Network.actor($0, isForEmergencies: Network.isNormal($0))
            },
            try await changeNodes("one source's node", round) { try Network.source($0, updateRate: 200) },
            try await change("context, all move", to: Network.context(isEmergency: true, remark: 0)),
            try await change("context, no rule asks", to: Network.context(isEmergency: true, remark: 1)),
        ]
    }

    /// The decision of a router.
    private var verdicts: IoRoutingTable.Verdicts {
        IoRoutingDecision(
            rules: rules,
            context: IoContext(coreType: .IoContext, objectType: IoContext.objectType, objectId: .init(), name: "-"),
            contextJSON: context,
            router: router
        ).verdicts
    }

    private typealias Change = (inout IoRoutingTable) async throws -> IoAssociationChanges

    /// Applies a change to a copy of the table, as a router does.
    private func change(_ body: Change) async throws -> IoAssociationChanges {
        var table = table
        defer { self.table = table }
        return try await body(&table)
    }

    private func step(_ name: String, _ body: Change) async throws -> Measured {
        var measured = Measured(name: name)
        let start = clock.now
        measured.changes = try await change(body).count
        measured.own.append(start.duration(to: clock.now).milliseconds)
        measured.naive.append(measureNaive())
        return measured
    }

    private func change(_ name: String, to changed: JSONView) async throws -> Measured {
        let old = context
        context = changed
        naive.context = changed
        let verdicts = verdicts
        return try await step(name) { [rules] table in
            try await table.evaluate(
                where: { kind in
                    rules.candidates(for: kind.valueType).rules.contains { $0.isTouched(from: old, to: changed) }
                },
                verdicts
            )
        }
    }

    /// Changes nodes one by one, and records the time per node.
    private func changeNodes(
        _ name: String,
        _ round: Int,
        _ node: (Int) throws -> Network.Node
    ) async throws -> Measured {
        let nodes = try (0..<Self.nodesPerRound).map {
            try node((round * Self.nodesPerRound + $0) % network.size)
        }
        var measured = Measured(name: name)
        let verdicts = verdicts
        let start = clock.now
        for node in nodes {
            measured.changes = try await change { try await $0.take(node.node, json: node.json, verdicts) }.count
        }
        measured.own.append((start.duration(to: clock.now) / nodes.count).milliseconds)
        for node in nodes { naive.take(node.node, json: node.json) }
        measured.naive.append(measureNaive())
        return measured
    }

    private func measureNaive() -> Double {
        var associations: [IoAssociation] = []
        let time = clock.measure { associations = naive.associations }
        guard Set(associations) == Set(table.associations) else {
            FileHandle.standardError.write(Data("the routers disagree\n".utf8))
            exit(1)
        }
        return time.milliseconds
    }
}

/// Prints the measurements of each size as a line of JSON. Exits with 1 if the routers disagree.
///
/// usage: routing-bench ROUNDS SIZE ...
@main
enum Main {
    static func main() async throws {
        let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        guard let rounds = numbers.first, rounds > 0, numbers.count == CommandLine.arguments.count - 1 else { exit(2) }
        for size in numbers.dropFirst() {
            let steps = try await RoutingBench.run(size: size, rounds: rounds)
            print(String(decoding: try JSONEncoder().encode(steps), as: UTF8.self))
        }
    }
}

extension Duration {
    fileprivate var milliseconds: Double { self / .milliseconds(1) }
}
