package import Access
import Base
package import Coaty

/// Finds the objects of the registry that a client requests, as far as it may see them.
package struct ObjectSearch: Query {
    /// A page of the result.
    package struct Output: Sendable {
        package let objects: [AliveObject]
        /// Number of matching objects.
        package let total: Int
    }

    private typealias Hit = (object: AliveObject, key: ObjectOrder.Key?)

    private let selection: ObjectSelection
    private let view: AccessView?
    private let filter: CompiledCondition?
    private let order: ObjectOrder?
    /// Nil until the first step has selected the candidates.
    private var candidates: [AliveObject]?
    private let content: RegisteredObjects
    /// Maximum size of the properties that are kept for sorting, in bytes.
    private let maximumKeyBytes: Int
    private var next = 0
    private var hits: [Hit] = []
    private var keyBytes = 0
    private var total = 0

    package init(
        _ selection: ObjectSelection,
        in content: RegisteredObjects,
        _ view: AccessView?,
        maximumKeyBytes: Int = Limits().queryMemory
    ) {
        self.maximumKeyBytes = maximumKeyBytes
        self.selection = selection
        self.content = content
        self.view = view
        filter = selection.filter?.condition
        order = selection.order.isEmpty ? nil : ObjectOrder(selection.order)
    }

    package mutating func step(_ budget: inout WorkBudget) throws -> Output? {
        guard let candidates else {
            candidates = try pickCandidates(&budget)
            return nil
        }
        if view == nil, filter == nil, order == nil {
            return Output(objects: page(candidates), total: candidates.count)
        }
        guard next < candidates.count else {
            try sort(&budget)
            return Output(objects: order == nil ? hits.map(\.object) : page(hits.map(\.object)), total: total)
        }
        next += 1
        try judge(candidates[next - 1], &budget)
        return nil
    }

    private func page(_ objects: [AliveObject]) -> [AliveObject] {
        Array(objects.dropFirst(selection.offset).prefix(selection.limit))
    }

    private func pickCandidates(_ budget: inout WorkBudget) throws -> [AliveObject] {
        let ids = selection.indexed(in: content)
        try budget.spend(ids?.count ?? content.listed.count)
        return ids.map { content.listed.objects($0) } ?? content.listed.inOrder
    }

    private mutating func judge(_ object: AliveObject, _ budget: inout WorkBudget) throws {
        try budget.spend()
        guard selection.includesTypes(of: object) else { return }
        if let view {
            // A condition of a grant may need to read the object.
            try budget.spend(1 + object.bytes.count / Self.bytesPerStep)
            guard view.allows([object.request(.read, .objects)]) else { return }
        }
        var key: ObjectOrder.Key?
        if filter != nil || order != nil {
            try budget.spend(1 + object.bytes.count / Self.bytesPerStep)
            guard let json = object.json, try filter?.holds(for: json, &budget) ?? true else { return }
            key = try order?.key(of: json, &budget)
        }
        total += 1
        guard let key else {
            // Without sorting, the page is known already.
            if total > selection.offset, hits.count < selection.limit { hits.append((object, nil)) }
            return
        }
        hits.append((object, key))
        keyBytes += key.footprint
        let wanted = selection.offset + selection.limit
        guard keyBytes > maximumKeyBytes || hits.count > 2 * wanted + Self.spareHits else { return }
        try sort(&budget)
        hits.removeLast(max(0, hits.count - wanted))
        keyBytes = hits.reduce(0) { $0 + ($1.key?.footprint ?? 0) }
        if keyBytes > maximumKeyBytes / 2 { throw WorkExceeded() }
    }

    /// Bytes of an object that are parsed in a step.
    private static let bytesPerStep = 64
    /// Hits beyond the page that are kept before they are sorted.
    private static let spareHits = 1_000

    private mutating func sort(_ budget: inout WorkBudget) throws {
        guard let order else { return }
        try hits.sort { left, right in
            guard let leftKey = left.key, let rightKey = right.key else { return false }
            let comparison = try order.compare(leftKey, rightKey, &budget)
            return comparison == 0 ? left.object.position < right.object.position : comparison < 0
        }
    }
}

extension ObjectSelection {
    func includesTypes(of object: AliveObject) -> Bool {
        coreType.map { $0 == object.coreType } ?? true && objectType.map { $0 == object.objectType } ?? true
    }

    /// Returns the ids of all objects that can match, and few others, using the indexes of the registry; nil if no
    /// index helps.
    func indexed(in content: RegisteredObjects) -> ObjectIndex.IDs? {
        var found: [ObjectIndex.IDs] = []
        if let coreType { found.append(content.listed.ids(of: coreType)) }
        if let objectType { found.append(content.listed.ids(of: objectType)) }
        for part in filter?.condition.conjuncts ?? [] {
            guard let keys = part.accessKeys else { continue }
            let ids = keys.map { content.listed.ids(with: $0) }
            // A condition without keys never holds.
            if !ids.contains(nil) { found.append(ids.reduce(into: []) { $0.formUnion($1 ?? []) }) }
        }
        return found.min { $0.count < $1.count }
    }
}

extension ObjectIndex {
    /// Returns the objects with a value; nil if there is no index of such values.
    fileprivate func ids(with key: AccessKey) -> IDs? {
        guard let (name, text) = key.member else { return nil }
        switch name {
        case "objectId":
            let id = CoatyUUID(wire: text)
            return self[id] == nil ? [] : [id]
        case "parentObjectId": return ids(withParent: CoatyUUID(wire: text))
        case "coreType": return CoreType(rawValue: text).map { ids(of: $0) } ?? []
        case "objectType": return ids(of: WireName(text))
        default: return nil
        }
    }
}

/// Finds the agents that a client may see.
package struct AgentSearch: Query {
    private let isOnline: Bool?
    private let view: AccessView?
    private let content: RegisteredObjects
    /// Nil until the first step has selected them.
    private var candidates: [AgentPresence]?
    private var next = 0
    private var agents: [AgentPresence] = []

    package init(isOnline: Bool?, in content: RegisteredObjects, _ view: AccessView?) {
        self.isOnline = isOnline
        self.view = view
        self.content = content
    }

    package mutating func step(_ budget: inout WorkBudget) throws -> [AgentPresence]? {
        guard let candidates else {
            let all = content.agents
            try budget.spend(all.count)
            candidates = isOnline.map { isOnline in all.filter { $0.isOnline == isOnline } } ?? all
            return nil
        }
        guard let view else { return candidates }
        guard next < candidates.count else { return agents }
        let agent = candidates[next]
        next += 1
        try budget.spend(bytes: agent.identity.count)
        let request = AccessRequest(verb: .read, pattern: .agents, objectText: agent.identity)
        if view.allows([request]) { agents.append(agent) }
        return nil
    }
}
