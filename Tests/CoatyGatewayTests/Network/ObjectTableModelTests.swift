import Coaty
import Testing
import TestSupport

@testable import Base
@testable import Network

/// Random events, applied to a table and to a model that has neither bounds nor indexes.
@Suite(.exclusive) struct ObjectTableModelTests {
    struct Limits: Sendable {
        var objects = 10_000
        var bytes = 64 << 20
        var departed = 1_000
    }

    /// The number of interesting cases that a run has reached.
    private struct Coverage {
        var comparisons = 0
        /// Number of objects that the model has listed again.
        var restored = 0
        /// Number of comparisons of a complete list after an object was removed from memory.
        var comparisonsAfterForgetting = 0
    }

    private static let agents = (0..<8).map { "agent\($0)" }
    private static let objects = (0..<16).map { "object\($0)" }

    private let scene = ObjectTableScene()

    @Test(arguments: UInt64(1)...10)
    func unboundedTableEqualsModel(seed: UInt64) throws {
        let coverage = try run(seed, Limits(), steps: 1_000)
        #expect(scene.table.content.isComplete)
        #expect(coverage.comparisons == 1_000 && coverage.restored > 20, "\(coverage)")
    }

    @Test(arguments: [
        Limits(objects: 16), Limits(objects: 10), Limits(bytes: 1_600), Limits(departed: 3), Limits(departed: 1),
        Limits(objects: 15, departed: 3),
    ])
    func boundedTableEqualsModelWhileItIsComplete(limits: Limits) throws {
        var total = Coverage()
        for seed in UInt64(1)...40 {
            let coverage = try run(seed, limits, steps: 100)
            total.comparisonsAfterForgetting += coverage.comparisonsAfterForgetting
            total.restored += coverage.restored
        }
        #expect(total.comparisonsAfterForgetting > 20 && total.restored > 20, "\(total)")
    }

    // MARK: - Steps

    private func run(_ seed: UInt64, _ limits: Limits, steps: Int) throws -> Coverage {
        var random = SeededGenerator(seed: seed)
        var model = Model()
        var coverage = Coverage()
        var replayed: [CoatyUUID: [UInt8]] = [:]
        scene.limit(objects: limits.objects, bytes: limits.bytes, departed: limits.departed)
        _ = scene.takeChanges()
        for _ in 0..<steps {
            try step(&model, using: &random)
            model.forgetDeparted { [table = scene.table] in !table.content.departed.contains(CoatyUUID(wire: $0)) }
            replay(scene.takeChanges(), on: &replayed)
            let isReplayed =
                replayed
                == Dictionary(uniqueKeysWithValues: scene.table.content.listed.objects.map { ($0.objectId, $0.bytes) })
            try #require(isReplayed)
            try checkInvariants(limits)
            guard scene.table.content.isComplete else { continue }
            let (listed, remembered) = (
                Self.texts(scene.table.content.listed.objects), Self.texts(scene.table.content.remembered.objects)
            )
            try #require(listed == Self.texts(model.listed))
            try #require(remembered.isSubset(of: Self.texts(model.remembered)))
            coverage.comparisons += 1
            if remembered.count < model.remembered.count { coverage.comparisonsAfterForgetting += 1 }
        }
        coverage.restored = model.restored
        scene.deadvertise(Self.agents + Self.objects)
        scene.deadvertise(Self.objects)
        #expect(scene.ids.isEmpty && scene.table.bytes == 0)
        return coverage
    }

    private func step(_ model: inout Model, using random: inout SeededGenerator) throws {
        func pick(_ ids: [String]) -> String { ids[Int.random(in: 0..<ids.count, using: &random)] }
        let agent = pick(Self.agents)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<25:
            let source = Int.random(in: 0..<10, using: &random) == 0 ? pick(Self.agents) : agent
            try show(agent, nil, 0, from: source, Bool.random(using: &random), on: &model)
        case 25..<70:
            let parents: [String?] = [nil, nil, nil, agent, pick(Self.agents), pick(Self.objects)]
            let parent = parents[Int.random(in: 0..<parents.count, using: &random)]
            let value = Int.random(in: 0..<3, using: &random)
            let isAdvertised = Int.random(in: 0..<4, using: &random) > 0
            try show(pick(Self.objects), parent, value, from: agent, isAdvertised, on: &model)
        case 70..<82:
            deadvertise([agent], on: &model)
        case 82..<90:
            let count = Int.random(in: 1...3, using: &random)
            deadvertise((0..<count).map { _ in pick(Self.agents + Self.objects) }, on: &model)
        case 90..<95:
            scene.markUnconfirmed()
            model.markUnconfirmed()
        default:
            scene.removeUnconfirmed()
            model.removeUnconfirmed()
        }
    }

    private func show(
        _ id: String,
        _ parent: String?,
        _ value: Int,
        from agent: String,
        _ isAdvertised: Bool,
        on model: inout Model
    ) throws {
        let isIdentity = Self.agents.contains(id)
        let members = #","v":\#(value)"# + (parent.map { #","parentObjectId":"\#($0)""# } ?? "")
        scene.confirm(agent)
        let json = ObjectTableScene.json(id, isIdentity ? .Identity : .CoatyObject, members)
        try scene.receive(json, from: agent, isAdvertised: isAdvertised)
        let object = Model.Object(id: id, owner: agent, parent: parent, isIdentity: isIdentity, value: value)
        model.take(object, isAdvertised: isAdvertised)
    }

    private func deadvertise(_ ids: [String], on model: inout Model) {
        scene.deadvertise(ids)
        model.deadvertise(ids)
    }

    // MARK: - Checks

    private func replay(_ changes: [ObjectChange], on list: inout [CoatyUUID: [UInt8]]) {
        for change in changes {
            let id = change.object.objectId
            switch change.kind {
            case .added: #expect(list.updateValue(change.object.bytes, forKey: id) == nil)
            case .changed: #expect(list.updateValue(change.object.bytes, forKey: id) == change.previous?.bytes)
            case .removed: #expect(list.removeValue(forKey: id) == change.object.bytes)
            }
        }
    }

    private func checkInvariants(_ limits: Limits) throws {
        let table = scene.table
        let (listed, remembered) = (Array(table.content.listed.objects), Array(table.content.remembered.objects))
        let ids = Set((listed + remembered).map(\.objectId))
        try #require(ids.count == listed.count + remembered.count, "no remembered object is listed")
        try #require(ids.count <= limits.objects)
        try #require((listed + remembered).map(\.size).reduce(0, +) == table.bytes)
        try #require(table.bytes <= limits.bytes)
        try #require(table.content.departed.agents.count <= limits.departed)
        let areOwnersDeparted = remembered.allSatisfy { table.content.departed.contains($0.owner) }
        try #require(areOwnersDeparted)
        let haveOtherParents = remembered.allSatisfy { $0.parentObjectId != $0.owner && $0.objectId != $0.owner }
        try #require(haveOtherParents)
        let areListedAgentsPresent = listed.allSatisfy {
            !$0.isPresence || !table.content.departed.contains($0.objectId)
        }
        try #require(areListedAgentsPresent)
    }

    private static func texts(_ objects: some Sequence<AliveObject>) -> Set<String> {
        Set(
            objects.map { object in
                let value = object.json?["v"]?.number.map { "\(Int($0))" } ?? ""
                return "\(object.objectId) \(object.owner) \(object.parentObjectId?.string ?? "") \(value)"
            }
        )
    }

    private static func texts(_ objects: [String: Model.Object]) -> Set<String> {
        Set(objects.values.map { "\($0.id) \($0.owner) \($0.parent ?? "") \($0.value)" })
    }
}

extension ObjectTableModelTests {
    /// The rules of the table, without bounds.
    private struct Model {
        struct Object {
            let id: String
            var owner: String
            let parent: String?
            let isIdentity: Bool
            let value: Int
            var witness: String?
            var isPresence: Bool { isIdentity && owner == id }
        }

        private(set) var listed: [String: Object] = [:]
        private(set) var remembered: [String: Object] = [:]
        private(set) var restored = 0
        private var departed: Set<String> = []
        private var unconfirmed: Set<String> = []

        mutating func take(_ object: Object, isAdvertised: Bool) {
            let (id, agent, known) = (object.id, object.owner, listed[object.id])
            var object = object
            let isOwn = agent == id || isAdvertised && !(known?.isPresence ?? false)
            object.owner = isOwn ? agent : known?.owner ?? agent
            object.witness = isOwn || agent == object.owner ? known?.witness : agent
            unconfirmed.remove(agent)
            listed[id] = object
            remembered[id] = nil
            if object.isPresence, !(known?.isPresence ?? false) { restore(id) }
        }

        private mutating func restore(_ agent: String) {
            departed.remove(agent)
            for object in remembered.values where object.owner == agent {
                remembered[object.id] = nil
                listed[object.id] = object
                restored += 1
            }
        }

        mutating func deadvertise(_ ids: [String]) {
            for id in ids {
                for object in listed.values where object.id == id || object.parent == id { remove(object) }
                remembered = remembered.filter { $0.key != id && $0.value.parent != id }
                remove(ownedBy: [id])
                unconfirmed.remove(id)
            }
        }

        /// Removes departed agents, but not their objects: if the table removes one, its list is no longer complete
        /// when the agent returns.
        mutating func forgetDeparted(where isForgotten: (String) -> Bool) {
            departed = departed.filter { !isForgotten($0) }
        }

        mutating func markUnconfirmed() {
            unconfirmed = Set(listed.values.map(\.owner))
            // Only agents that resolve an object from now on can become its owner.
            for id in listed.keys { listed[id]?.witness = nil }
        }

        mutating func removeUnconfirmed() {
            let gone = unconfirmed
            unconfirmed = []
            for object in listed.values where gone.contains(object.owner) && !object.isPresence {
                guard let witness = object.witness, listed[witness] != nil else { continue }
                listed[object.id]?.owner = witness
            }
            remove(ownedBy: gone)
        }

        private mutating func remove(ownedBy agents: Set<String>) {
            let owned = listed.values.filter { agents.contains($0.owner) }
            for object in owned { remove(object) }
            for var object in owned
            where object.id != object.owner && object.parent != object.owner && departed.contains(object.owner) {
                object.witness = nil
                remembered[object.id] = object
            }
        }

        private mutating func remove(_ object: Object) {
            listed[object.id] = nil
            if object.isPresence { departed.insert(object.id) }
        }
    }
}
