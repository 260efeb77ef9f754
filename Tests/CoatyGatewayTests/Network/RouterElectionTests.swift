import Coaty
import Testing
import TestSupport

@testable import Cluster
@testable import Network

/// Gateways that decide who speaks, with random starts, ends, pauses and partitions.
struct RouterElectionTests {
    /// Gateways and the messages between them; each step takes 250 ms.
    private struct Cluster {
        struct Node {
            let id: CoatyUUID
            var election: RouterElection
            var presence = ClusterPresence()
            var isRunning = true
            var isFrozen = false
            var isOnline = true
            /// Gateways in different sides do not receive each other's messages.
            var side = 0
            var seesOther = false
            /// The latest claims of the others, and when they arrived.
            var heard: [Int: (claim: RouterElection.Claim, at: Duration)] = [:]
            var steps: [RouterElection.Step] = []
        }

        static let interval = Duration.milliseconds(250)
        var nodes: [Node] = []
        var now = Duration.zero
        /// Messages that are on the way.
        private var messages: [(from: Int, claim: RouterElection.Claim, at: Duration)] = []
        var generator: SeededGenerator

        init(_ count: Int, seed: UInt64) {
            generator = SeededGenerator(seed: seed)
            for _ in 0..<count { start() }
        }

        mutating func start(version: RoutingVersion = RoutingVersion()) {
            // Ordered by their ids.
            let id = CoatyUUID(wire: "gateway-\(String(nodes.count + 100))")
            var node = Node(id: id, election: RouterElection(id: id))
            node.election.adopt(version)
            nodes.append(node)
        }

        mutating func run(_ time: Duration) {
            let end = now + time
            while now < end { step() }
        }

        private mutating func step() {
            now += Self.interval
            let arrived = messages.filter { $0.at <= now }
            messages.removeAll { $0.at <= now }
            for message in arrived {
                for index in nodes.indices where index != message.from && receives(index, from: message.from) {
                    nodes[index].heard[message.from] = (message.claim, now)
                }
            }
            for index in nodes.indices where nodes[index].isRunning && !nodes[index].isFrozen {
                act(index)
                guard nodes[index].isOnline else { continue }
                let delay = Self.interval * Int.random(in: 0...2, using: &generator)
                messages.append((index, nodes[index].election.claim, now + delay))
            }
        }

        private func receives(_ one: Int, from other: Int) -> Bool {
            nodes[one].isRunning && !nodes[one].isFrozen && nodes[one].isOnline && nodes[one].side == nodes[other].side
        }

        private mutating func act(_ index: Int) {
            var node = nodes[index]
            node.presence.note(now, isOnline: node.isOnline, longest: Peers.timeout)
            let live = node.heard.filter { !node.isOnline || now - $0.value.at < Peers.timeout }
            let others = Dictionary(uniqueKeysWithValues: live.map { (nodes[$0.key].id, $0.value.claim) })
            let step = node.election.step(
                .init(
                    now: now,
                    presentSince: node.presence.since,
                    others: others,
                    highestTerm: node.heard.values.map(\.claim.version.term).max() ?? 0,
                    seesOther: node.seesOther
                )
            )
            switch step {
            case .follow(let speaker): if let claim = others[speaker] { node.election.adopt(claim.version) }
            case .yield(let speaker):
                if let claim = others[speaker] { node.election.adopt(claim.version) }
                node.election.fallSilent()
            default: break
            }
            if step != .stay { node.steps.append(step) }
            nodes[index] = node
        }

        /// The gateways that speak, by side.
        var speakers: [Int: [Int]] {
            Dictionary(grouping: nodes.indices.filter { nodes[$0].isRunning && nodes[$0].election.claim.speaks }) {
                nodes[$0].side
            }
        }

        mutating func disturb() {
            let index = Int.random(in: nodes.indices, using: &generator)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: if nodes.count < 8 { start(version: .init(term: UInt64.random(in: 0...9, using: &generator))) }
            case 1: nodes[index].isRunning = false
            case 2: nodes[index].isFrozen.toggle()
            case 3: nodes[index].isOnline.toggle()
            case 4: nodes[index].side = 1 - nodes[index].side
            case 5: for index in nodes.indices { nodes[index].side = 0 }
            case 6: if nodes[index].election.claim.speaks { nodes[index].election.change() }
            default: nodes[index].seesOther.toggle()
            }
        }

        mutating func settle() {
            for index in nodes.indices {
                (nodes[index].isFrozen, nodes[index].isOnline, nodes[index].seesOther) = (false, true, false)
            }
            run(.seconds(45))
        }
    }

    private static func restTime(_ cluster: inout Cluster) -> Duration {
        .milliseconds(Int.random(in: 0...20_000, using: &cluster.generator))
    }

    @Test(arguments: UInt64(1)...100) func afterAnyEventsOneGatewaySpeaksOnEachSide(seed: UInt64) {
        var cluster = Cluster(3, seed: seed)
        for _ in 0..<25 {
            cluster.disturb()
            cluster.run(Self.restTime(&cluster))
        }
        cluster.settle()
        for side in 0...1 {
            let running = cluster.nodes.indices.filter { cluster.nodes[$0].isRunning && cluster.nodes[$0].side == side }
            let speakers = cluster.speakers[side] ?? []
            #expect(speakers.count == (running.isEmpty ? 0 : 1), "side \(side): \(speakers)")
            let versions = Set(running.map { cluster.nodes[$0].election.claim.version })
            #expect(versions.count <= 1, "\(versions)")
        }
    }

    @Test func aSingleGatewaySpeaksAfterTheSettlingTime() {
        var cluster = Cluster(1, seed: 1)
        cluster.run(RouterElection.settlingTime - .milliseconds(1))
        #expect(cluster.nodes[0].steps.isEmpty)
        cluster.run(.milliseconds(500))
        #expect(cluster.nodes[0].steps == [.speak])
    }

    @Test func theSpeakerKeepsItsPlaceWhenOthersStart() {
        var cluster = Cluster(2, seed: 1)
        cluster.nodes[0].isRunning = false
        cluster.run(.seconds(10))
        cluster.nodes[0].isRunning = true
        cluster.run(.seconds(20))
        #expect(cluster.speakers[0] == [1] && !cluster.nodes[0].steps.contains(.speak))
    }

    @Test func theLatestStateWinsWhenAllStart() {
        var cluster = Cluster(1, seed: 1)
        cluster.start(version: RoutingVersion(term: 3, counter: 2))
        cluster.run(.seconds(20))
        #expect(cluster.speakers[0] == [1])
        #expect(cluster.nodes[0].election.claim.version == RoutingVersion(term: 4, counter: 2))
    }

    @Test func afterAPartitionTheOthersYieldAndTheWinnerPublishesAgain() {
        var cluster = Cluster(2, seed: 1)
        cluster.run(.seconds(10))
        #expect(cluster.speakers[0] == [0])
        cluster.nodes[1].side = 1
        cluster.run(.seconds(20))
        #expect(cluster.speakers == [0: [0], 1: [1]])
        for index in 0...1 { cluster.nodes[index].steps = [] }
        cluster.nodes[1].side = 0
        cluster.run(.seconds(3))
        // The other side has the higher term.
        #expect(cluster.speakers[0] == [1])
        #expect(cluster.nodes[0].steps.first == .yield(cluster.nodes[1].id))
        #expect(cluster.nodes[1].steps == [.publishAgain])
    }

    @Test(arguments: [true, false]) func afterALongInterruptionTheSpeakerListensFirst(isFrozen: Bool) {
        var cluster = Cluster(1, seed: 1)
        cluster.run(.seconds(10))
        if isFrozen { cluster.nodes[0].isFrozen = true } else { cluster.nodes[0].isOnline = false }
        cluster.run(.seconds(12))
        (cluster.nodes[0].isFrozen, cluster.nodes[0].isOnline, cluster.nodes[0].steps) = (false, true, [])
        cluster.run(.milliseconds(500))
        #expect(cluster.nodes[0].steps == [.fallSilent])
        cluster.run(.seconds(10))
        #expect(cluster.nodes[0].steps == [.fallSilent, .speak])
    }

    @Test func aShortInterruptionDoesNotCount() {
        var cluster = Cluster(1, seed: 1)
        cluster.run(.seconds(10))
        cluster.nodes[0].steps = []
        cluster.nodes[0].isOnline = false
        cluster.run(.seconds(8))
        cluster.nodes[0].isOnline = true
        cluster.run(.seconds(10))
        #expect(cluster.nodes[0].steps.isEmpty && cluster.speakers[0] == [0])
    }

    @Test func anotherRouterKeepsTheContextUntilItLeaves() {
        var cluster = Cluster(2, seed: 1)
        // Only one gateway has seen it.
        cluster.nodes[1].seesOther = true
        cluster.run(.seconds(30))
        #expect(cluster.speakers.isEmpty)
        cluster.nodes[1].seesOther = false
        cluster.run(.seconds(2))
        #expect(cluster.speakers[0] == [0])
        // One that comes later does not silence the cluster.
        cluster.nodes[0].seesOther = true
        cluster.run(.seconds(20))
        #expect(cluster.speakers[0] == [0])
    }
}
