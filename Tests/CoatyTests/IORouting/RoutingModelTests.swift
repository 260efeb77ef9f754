import RoutingReference
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// A router that only decides on changes, compared with one that decides on all pairs each time.
@Suite(.exclusive) struct RoutingModelTests {
    /// The associations that agents know from changes. The agents of both points must have received an association
    /// since they have had their nodes.
    private struct Listener {
        struct Association: Equatable {
            let route: String
            let updateRate: Int?
            let nodes: [CoatyUUID?]

            init(_ key: [CoatyUUID], route: String, updateRate: Int?, in table: IoRoutingTable) {
                self.route = route
                self.updateRate = updateRate
                nodes = [table.source(key[0])?.node.id, table.actor(key[1])?.node.id]
            }
        }

        private(set) var known: [[CoatyUUID]: Association] = [:]
        private var dissolved: Set<[CoatyUUID]> = []
        /// The points whose agent may have missed earlier dissolutions.
        var returned: Set<CoatyUUID> = []

        mutating func receive(_ key: [CoatyUUID], _ current: Association?, _ place: String) {
            if let current {
                #expect(known[key] != current, "\(place): the change adds nothing")
                known[key] = current
            } else {
                let isRepeated = dissolved.contains(key) && !returned.isDisjoint(with: key)
                #expect(
                    known.removeValue(forKey: key) != nil || isRepeated,
                    "\(place): the change dissolves an unknown association"
                )
                dissolved.insert(key)
            }
        }

        mutating func receive(_ event: AssociateEvent, _ table: IoRoutingTable, _ place: String) {
            let data = event.data
            let key = [data.ioSourceId, data.ioActorId]
            let current = data.associatingRoute.map {
                Association(key, route: $0, updateRate: data.updateRate, in: table)
            }
            receive(key, current, place)
        }

        func checkNodes(_ table: IoRoutingTable, _ place: String) {
            for (key, current) in known {
                let now = Association(key, route: current.route, updateRate: current.updateRate, in: table)
                #expect(current == now, "\(place): an agent does not know of its association")
            }
        }

        var rates: [[CoatyUUID]: Int?] { known.mapValues(\.updateRate) }
    }

    @Test(arguments: 0..<150 as Range<UInt64>)
    @ControllerActor func associationsEqualThoseOfTheNaiveRouter(seed: UInt64) async throws {
        var random = RandomNetwork(seed: seed)
        var table = IoRoutingTable { sourceId, route in route ?? "coaty/3/-/IOV/\(sourceId)" }
        var context = try random.context()
        var naive = NaiveRouter(rules: try random.rules(), context: try view(context))
        var rules = IoAssociationRules(naive.rules)
        var listener = Listener()
        let router = try Self.router(context)

        func verdicts() -> IoRoutingTable.Verdicts {
            IoRoutingDecision(rules: rules, context: context, contextJSON: naive.context, router: router).verdicts
        }

        for step in 0..<60 {
            let changes: IoAssociationChanges
            switch random.number(0...9) {
            case 0...4:
                let json = try #require(try random.node().json["object"])
                let node = try #require(try PayloadCoder.object(json) as? IoNode)
                naive.take(node, json: json)
                changes = try await table.take(node, json: json, verdicts())
            case 5...6:
                let id = CoatyUUID(wire: random.nodeId())
                naive.remove(id)
                changes = try await table.remove(id, verdicts())
            case 7...8:
                let old = naive.context
                context = try random.context()
                naive.context = try view(context)
                let new = naive.context
                changes = try await table.evaluate(
                    where: { kind in
                        rules.candidates(for: kind.valueType).rules.contains { $0.isTouched(from: old, to: new) }
                    },
                    verdicts()
                )
            default:
                let old = rules
                naive.rules = try random.rules()
                rules = IoAssociationRules(naive.rules)
                changes = try await table.evaluate(where: { old.isTouched($0.valueType, by: rules) }, verdicts())
            }
            for association in changes.removed { listener.receive(association.key, nil, "step \(step)") }
            for association in changes.added + changes.changed {
                #expect(changes.added.contains(association) == (listener.known[association.key] == nil))
                let route = try #require(table.association(association.ioSourceId, association.ioActorId)).route
                let current = Listener.Association(
                    association.key,
                    route: route,
                    updateRate: association.updateRate,
                    in: table
                )
                listener.receive(association.key, current, "step \(step)")
            }
            let wanted = naive.associations
            #expect(Set(table.associations) == Set(wanted), "step \(step)")
            #expect(table.associations.count == wanted.count && table.associationCount == wanted.count)
            #expect(listener.rates == Dictionary(uniqueKeysWithValues: wanted.map { ($0.key, $0.updateRate) }))
            listener.checkNodes(table, "step \(step)")
        }
        #expect(try await table.preview(verdicts()).isEmpty, "all pairs had been decided")
        for association in table.removeAll().removed { listener.receive(association.key, nil, "at the end") }
        #expect(listener.known.isEmpty && table.associationCount == 0)
    }

    /// A node that would lead to too many pairs is refused; it is accepted when the other nodes have left.
    @Test func nodeWithTooManyPairsIsRefused() async throws {
        let none: IoRoutingTable.Verdicts = { _ in .constant(false) }
        var table = IoRoutingTable { sourceId, route in route ?? "coaty/3/-/IOV/\(sourceId)" }
        func node(_ id: String, sources: Int, actors: Int) throws -> (IoNode, JSONView) {
            func points(_ coreType: String, _ count: Int) -> String {
                (0..<count).map {
                    #"{"coreType":"\#(coreType)","objectType":"coaty.\#(coreType)","objectId":"\#(id)-\#($0)","name":"n","valueType":"v"}"#
                }
                .joined(separator: ",")
            }
            let text =
                #"{"coreType":"IoNode","objectType":"coaty.IoNode","objectId":"\#(id)","name":"ctx","ioSources":["#
                + points("IoSource", sources) + #"],"ioActors":["# + points("IoActor", actors) + "]}"
            let view = try JSONDocument(Array(text.utf8)).root
            return (try #require(try PayloadCoder.object(view) as? IoNode), view)
        }
        let (sources, sourcesJSON) = try node("s", sources: 2_000, actors: 0)
        let (actors, actorsJSON) = try node("a", sources: 0, actors: 2_001)
        _ = try await table.take(sources, json: sourcesJSON, none)
        await #expect(throws: IoRoutingTable.Refusal.tooManyPairs) {
            try await table.take(actors, json: actorsJSON, none)
        }
        _ = try await table.remove(sources.objectId, none)
        _ = try await table.take(actors, json: actorsJSON, none)
        #expect(table.nodes.count == 1)
    }

    /// The published Associate events lead to the same associations. Only dissolutions are repeated, for the agent of a
    /// node that has returned.
    @Test(.timeLimit(.minutes(2)), arguments: 0..<8 as Range<UInt64>)
    @ControllerActor func publishesOnlyChanges(seed: UInt64) async throws {
        var random = RandomNetwork(seed: 1_000 + seed)
        let broker = TopicBroker()
        let context = try random.context()
        var naive = NaiveRouter(rules: try random.rules(), context: try view(context))
        let router = try Container.resolve(
            components: Components(controllers: ["router": RuleBasedIoRouter.self]),
            configuration: Configuration(
                communication: CommunicationOptions { _ in TopicBinding(broker: broker) },
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: ["ioContext": context, "rules": naive.rules])
                ])
            )
        )
        let controller: RuleBasedIoRouter = try #require(router.getController(name: "router"))
        let observer = try CommunicationManager(
            identity: Identity(name: "observer"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        let received = Recorder<AssociateEvent>()
        let subscription = observer.subscribe(try .associate(ioContextName: "ctx")) { received.append($0) }
        observer.start()
        try await observer.untilOnline()
        let own = router.communicationManager.identityId.string
        router.communicationManager.start()
        _ = try await broker.waitForMessages { messages in
            messages.contains { $0.topic == "coaty/3/-/ADV::com.example.Context/\(own)" }
        }
        var agents: [CoatyUUID: CoatyUUID?] = [:]
        var listener = Listener()
        var handled = 0

        for step in 0..<40 {
            listener.returned = []
            switch random.number(0...9) {
            case 0...5:
                let payload = try random.node(named: random.chance(95) ? "ctx" : "another")
                let json = try #require(payload.json["object"])
                let node = try #require(try PayloadCoder.object(json) as? IoNode)
                try observer.publishAdvertise(AdvertiseEvent(payload: payload))
                // A node with the same id of another agent is another node.
                if let agent = agents[node.objectId], agent != node.parentObjectId {
                    naive.remove(node.objectId)
                    agents[node.objectId] = nil
                }
                if agents[node.objectId] == nil {
                    listener.returned = Set(node.ioSources.map(\.objectId) + node.ioActors.map(\.objectId))
                }
                if node.name == "ctx", !(node.ioSources.isEmpty && node.ioActors.isEmpty) {
                    naive.take(node, json: json)
                    agents.updateValue(node.parentObjectId, forKey: node.objectId)
                } else {
                    naive.remove(node.objectId)
                    agents[node.objectId] = nil
                }
            case 6...7:
                let id = random.nodeId()
                naive.remove(CoatyUUID(wire: id))
                agents[CoatyUUID(wire: id)] = nil
                try observer.publishDeadvertise(.with(objectIds: [CoatyUUID(), CoatyUUID(wire: id)]))
            case 8:
                naive.rules = try random.rules()
                controller.rules = naive.rules
            default: break
            }
            // Each step updates the context; the Complete event follows all other events of the step.
            let updated = try random.context()
            naive.context = try view(updated)
            let update = Task {
                for await _ in try observer.publishUpdate(.with(object: updated), timeLimit: patience) { return }
            }
            try await update.value
            for event in received.values[handled...] { listener.receive(event, controller.table, "step \(step)") }
            listener.checkNodes(controller.table, "step \(step)")
            handled = received.values.count
            let wanted = naive.associations
            #expect(listener.rates == Dictionary(uniqueKeysWithValues: wanted.map { ($0.key, $0.updateRate) }))
            #expect(Set(controller.associations) == Set(wanted), "step \(step)")
        }
        await router.shutdown()
        for event in try await received.wait(for: handled + listener.known.count)[handled...] {
            #expect(event.data.associatingRoute == nil)
            listener.receive(event, controller.table, "at the end")
        }
        #expect(listener.known.isEmpty)
        subscription.cancel()
        await observer.stop()
    }

    private func view(_ context: IoContext) throws -> JSONView {
        try JSONDocument(encoding: context).root
    }

    @ControllerActor private static func router(_ context: IoContext) throws -> RuleBasedIoRouter {
        let container = try Container.resolve(
            components: Components(controllers: ["router": RuleBasedIoRouter.self]),
            configuration: Configuration(
                communication: CommunicationOptions { _ in TopicBinding(broker: TopicBroker()) },
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: ["ioContext": context])
                ])
            )
        )
        return try #require(container.getController(name: "router"))
    }
}

extension IoAssociation {
    fileprivate var key: [CoatyUUID] { [ioSourceId, ioActorId] }
}
