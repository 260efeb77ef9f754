import Coaty
import Foundation
import Logging
import RoutingReference
import Synchronization

/// A router that records its decisions.
final class MeasuredRouter: RuleBasedIoRouter {
    /// The time of all changes since the last ``takeTime()``.
    private var time = Duration.zero
    /// The changes that the last evaluation made.
    private(set) var changes = IoAssociationChanges()
    private var waiting: CheckedContinuation<Void, Never>?

    override func onEvaluated(duration: Duration) {
        time += duration
        changes = IoAssociationChanges()
        waiting?.resume()
        waiting = nil
    }

    override func onAssociationsChanged(_ changes: IoAssociationChanges) { self.changes = changes }

    /// Waits for the next evaluation.
    func untilEvaluated() async { await withCheckedContinuation { waiting = $0 } }

    func takeTime() -> Duration {
        defer { time = .zero }
        return time
    }
}

/// Measures the time to decide on the associations of an IO context, compared with a router that decides on all pairs
/// each time. The time to read a node and to publish the changes is not included.
///
/// The router and an agent that publishes all nodes share a broker in memory. Before each step, the bench waits until
/// all associations of the step before are published, because publishing uses the router's executor too.
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
    private let container: Container
    private let router: MeasuredRouter
    private let others: CommunicationManager
    private let associateCount = Atomic(0)
    private var publishedCount = 0
    private let clock = ContinuousClock()
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
        let broker = InMemoryBroker()
        let options = CommunicationOptions { _ in InMemoryBinding(broker: broker) }
        let logger = Logger(label: "routing-bench") { _ in SwiftLogNoOpLogHandler() }
        let context = Network.context(isEmergency: false, remark: 0)
        container = try Container.resolve(
            components: Components(controllers: ["router": MeasuredRouter.self]),
            configuration: Configuration(
                communication: options,
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: ["ioContext": context])
                ])
            ),
            logger: logger
        )
        guard let router: MeasuredRouter = container.getController(name: "router"), let json = router.ioContextJSON
        else { exit(1) }
        self.router = router
        naive = NaiveRouter(rules: network.rules, context: json)
        others = try CommunicationManager(identity: Identity(name: "others"), options: options, logger: logger)
    }

    private func measure(_ round: Int) async throws -> [Measured] {
        let associations = others.subscribe(try .associate(ioContextName: Network.contextName)) { [weak self] _ in
            self?.associateCount.add(1, ordering: .relaxed)
        }
        container.communicationManager.start()
        others.start()
        while !container.communicationManager.isConnected || !others.isConnected {
            try await Task.sleep(for: .milliseconds(1))
        }
        try await publish(network.nodes)
        let steps = [
            try await evaluate("all, from nothing") { [network] router in await router.replaceRules(network.rules) },
            try await evaluate("all, nothing changes") { await $0.evaluate() },
            try await changeNodes("one actor's node", round) {
                try Network.actor($0, isForEmergencies: Network.isNormal($0))
            },
            try await changeNodes("one source's node", round) { try Network.source($0, updateRate: 200) },
            try await change("context, all move", to: Network.context(isEmergency: true, remark: 0)),
            try await change("context, no rule asks", to: Network.context(isEmergency: true, remark: 1)),
        ]
        associations.cancel()
        await container.shutdown()
        await others.stop()
        return steps
    }

    /// Publishes nodes one by one, each after the router has decided on the one before.
    private func publish(_ nodes: [Network.Node]) async throws {
        for node in nodes {
            try others.publishAdvertise(node.event)
            await router.untilEvaluated()
            publishedCount += router.changes.count
            naive.take(node.node, json: node.json)
        }
    }

    private func step(_ name: String, _ body: (MeasuredRouter) async throws -> Void) async throws -> Measured {
        while associateCount.load(ordering: .relaxed) < publishedCount { try await Task.sleep(for: .milliseconds(1)) }
        var measured = Measured(name: name)
        _ = router.takeTime()
        try await body(router)
        measured.own.append(router.takeTime().milliseconds)
        measured.changes = router.changes.count
        measured.naive.append(measureNaive())
        return measured
    }

    private func evaluate(_ name: String, _ body: (MeasuredRouter) async throws -> Void) async throws -> Measured {
        let measured = try await step(name, body)
        publishedCount += measured.changes
        return measured
    }

    private func change(_ name: String, to context: sending IoContext) async throws -> Measured {
        let event = try UpdateEvent.with(object: context)
        return try await evaluate(name) { router in
            // The router completes the update after it has published all associations.
            for await _ in try others.publishUpdate(event, timeLimit: .seconds(60)) { break }
            if let json = router.ioContextJSON { naive.context = json }
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
        var measured = try await step(name) { _ in try await publish(nodes) }
        measured.own = measured.own.map { $0 / Double(nodes.count) }
        return measured
    }

    private func measureNaive() -> Double {
        var associations: [IoAssociation] = []
        let time = clock.measure { associations = naive.associations }
        guard Set(associations) == Set(router.associations) else {
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
