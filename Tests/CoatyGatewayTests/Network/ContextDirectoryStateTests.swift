import Coaty
import Testing
import TestSupport

@testable import Base
@testable import Network

/// Random event sequences, applied to the state of the directory of IO contexts.
@Suite(.exclusive) struct ContextDirectoryStateTests {
    private typealias State = ContextDirectory.State
    private typealias Pair = ContextDirectory.Pair

    private let agents = (0..<4).map { _ in CoatyUUID() }
    private let contexts = (0..<3).map { _ in CoatyUUID() }
    private let nodes = (0..<5).map { _ in CoatyUUID() }
    private let points = (0..<6).map { _ in CoatyUUID() }

    @Test(arguments: UInt64(1)...10)
    func randomEventsKeepTheStateConsistent(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var state = State(Limits())
        var reported: [CoatyUUID: Set<Pair>] = [:]
        var now = Duration.zero
        for _ in 0..<1_000 {
            now += .seconds(Int.random(in: 0...3, using: &random))
            try apply(Int.random(in: 0..<100, using: &random), to: &state, at: now, using: &random)
            for (id, changes) in state.effects.changes {
                for added in changes.added {
                    let isNew = reported[id, default: []].insert(Self.pair(added)).inserted
                    #expect(isNew)
                }
                for removed in changes.removed { #expect(reported[id]?.remove(Self.pair(removed)) != nil) }
                for changed in changes.changed { #expect(reported[id]?.contains(Self.pair(changed)) == true) }
            }
            state.effects = .init()
            let isConsistent = isConsistent(state, reported)
            try #require(isConsistent)
        }
        // When all agents and nodes have left, the state is empty and the counters are zero.
        _ = state.deadvertise(Set(agents + nodes), by: nil, until: now)
        state.expire(at: now + ContextDirectory.confirmationTime)
        #expect(state.contexts.isEmpty && state.nodes.count == 0)
        #expect(state.byteCount == 0 && state.associationCount == 0)
        #expect(state.nextDeadline == nil)
    }

    @Test func contextsNodesAndBytesAreBoundedByTheSettings() throws {
        func shown(_ change: (inout Limits) -> Void) throws -> State {
            var limits = Limits()
            change(&limits)
            var state = State(limits)
            for (context, node) in zip(contexts, nodes) {
                let text = #"{"name":"a","parentObjectId":"\#(agents[0])"}"#
                let json = try JSONDocument(Array(text.utf8)).root
                _ = state.show(context, json, name: WireName("a"), by: agents[0], .advertised, at: .zero)
                let points = points.map { #"{"objectId":"\#($0)"}"# }.joined(separator: ",")
                let nodeText = #"{"name":"a","parentObjectId":"\#(agents[0])","ioSources":[\#(points)],"ioActors":[]}"#
                state.show(node: try JSONDocument(Array(nodeText.utf8)).root, node, by: agents[0])
            }
            return state
        }
        let all = try shown { _ in }
        #expect(all.contexts.count == 3 && all.nodes.count == 3)
        #expect(try shown { $0.observedContexts = 2 }.contexts.count == 2)
        // Each node has ten points.
        #expect(try shown { $0.observedIoNodes = 2 }.nodes.count == 2)
        #expect(try shown { $0.observedIoNodes = 1 }.nodes.count == 1)
        let few = try shown { $0.observedContextMemory = all.byteCount - 1 }
        #expect(few.byteCount < all.byteCount && few.nodes.count == 2)
    }

    private static func pair(_ association: IoAssociation) -> Pair {
        Pair(sourceId: association.ioSourceId, actorId: association.ioActorId)
    }

    private func apply(_ number: Int, to state: inout State, at now: Duration, using random: inout SeededGenerator)
        throws
    {
        let agent = agents[Int.random(in: 0..<agents.count, using: &random)]
        let context = contexts[Int.random(in: 0..<contexts.count, using: &random)]
        let node = nodes[Int.random(in: 0..<nodes.count, using: &random)]
        // Several contexts may have the same name, as in the network.
        let name = Bool.random(using: &random) ? "a" : "b"
        let some = points.filter { _ in Bool.random(using: &random) }
        let deadline = now + ContextDirectory.confirmationTime
        switch number {
        case ..<20:
            let showing: [ContextDirectory.Showing] = [.advertised, .resolved, .completed]
            let parent = Bool.random(using: &random) ? #","parentObjectId":"\#(agent)""# : ""
            let json = try JSONDocument(Array(#"{"name":"\#(name)"\#(parent)}"#.utf8)).root
            let index = Int.random(in: 0..<showing.count, using: &random)
            _ = state.show(context, json, name: WireName(name), by: agent, showing[index], at: now)
        case ..<70:
            let isAssociated = Int.random(in: 0..<4, using: &random) > 0
            let event = try AssociateEvent.with(
                ioContextName: name,
                ioSourceId: points[Int.random(in: 0..<3, using: &random)],
                ioActorId: points[Int.random(in: 3..<6, using: &random)],
                associatingRoute: isAssociated ? "r\(Int.random(in: 0..<20, using: &random))" : nil
            )
            state.associate(event, by: agent, in: context)
        case ..<80:
            let list = some.map { #"{"objectId":"\#($0)"}"# }.joined(separator: ",")
            let text = #"{"name":"\#(name)","parentObjectId":"\#(agent)","ioSources":[\#(list)],"ioActors":[]}"#
            state.show(node: try JSONDocument(Array(text.utf8)).root, node, by: agent)
        case ..<90: _ = state.deadvertise([agent], by: agent, until: deadline)
        case ..<92: _ = state.deadvertise([context, node], by: agent, until: deadline)
        case ..<93: state.requireConfirmation(until: deadline)
        default: state.expire(at: now)
        }
    }

    private func isConsistent(_ state: State, _ reported: [CoatyUUID: Set<Pair>]) -> Bool {
        let count = state.contexts.values.reduce(0) { $0 + $1.associations.count }
        return state.associationCount == count
            && contexts.allSatisfy { Set(state.contexts[$0]?.associations.keys ?? [:].keys) == reported[$0] ?? [] }
            && state.contexts.values.allSatisfy { context in
                let pairs = context.routers.values.reduce(0) { $0 + $1.pairs.count }
                return !context.routers.isEmpty && pairs == context.associations.count
                    && context.associations.allSatisfy { context.routers[$1.router]?.pairs.contains($0) == true }
                    && context.routers.values.allSatisfy { $0.isListed || !$0.pairs.isEmpty }
            }
    }
}
