import OrderedCollections

/// The nodes of an IO context and the associations that were decided for them.
///
/// Whatever changes costs what it touches: sources and actors are found by their kind, a node that changes has its own pairs
/// decided anew, and a verdict that stays makes no change.
package struct IoRoutingTable {
    /// Says whether a source and an actor of the same kind are to be associated.
    package typealias Verdict = (_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool

    /// Why a node is not taken.
    package enum Refusal: Error { case tooManyNodes, tooManyPoints, tooManyBytes }

    fileprivate struct Member {
        let arrival: Int
        let sources: [RoutedPoint<IoSource>]
        let actors: [RoutedPoint<IoActor>]
        let node: RoutedNode
    }

    fileprivate struct Compatible {
        var sources: [RoutedPoint<IoSource>] = []
        var actors: [RoutedPoint<IoActor>] = []
    }

    /// What was decided for a source.
    struct Routed {
        /// Made once and kept as long as the source is there.
        let route: String
        /// The actors, each with the rate of the pair.
        var actors: OrderedDictionary<CoatyUUID, Int?> = [:]
        /// The largest rate of all pairs.
        var updateRate: Int?
    }

    private let namespace: String
    private var members: OrderedDictionary<CoatyUUID, Member> = [:]
    private var arrivals = 0
    private var pointCount = 0
    /// Of the texts of the nodes.
    private var byteCount = 0
    /// Who has a point of this id. It belongs to the node that came first; the others get it when that goes.
    private var sources: [CoatyUUID: [RoutedPoint<IoSource>]] = [:]
    private var actors: [CoatyUUID: [RoutedPoint<IoActor>]] = [:]
    private var compatible: [PointKind: Compatible] = [:]
    private var routed: [CoatyUUID: Routed] = [:]
    private(set) var associationCount = 0
    /// Whether a pair was not associated because there were too many.
    private(set) var isFull = false

    /// - Parameter namespace: that of routes within Coaty.
    package init(namespace: String) {
        self.namespace = namespace
    }

    // MARK: - What there is

    /// The nodes in the order in which they came.
    package var nodes: [RoutedNode] { members.values.map(\.node) }

    package func node(_ id: CoatyUUID) -> RoutedNode? { members[id]?.node }

    /// The source of an id.
    package func source(_ id: CoatyUUID) -> RoutedPoint<IoSource>? { sources[id]?.first }

    /// The actor of an id.
    package func actor(_ id: CoatyUUID) -> RoutedPoint<IoActor>? { actors[id]?.first }

    /// The route of a source and the rate of an association; nil where there is none.
    func association(_ sourceId: CoatyUUID, _ actorId: CoatyUUID) -> (route: String, updateRate: Int?)? {
        guard let routed = routed[sourceId], routed.actors[actorId] != nil else { return nil }
        return (routed.route, routed.updateRate)
    }

    /// All associations, in the order of the nodes.
    package var associations: [IoAssociation] {
        heldSources.flatMap { source in
            routed[source.id].map { routed in
                routed.actors.keys.map {
                    IoAssociation(ioSourceId: source.id, ioActorId: $0, updateRate: routed.updateRate)
                }
            } ?? []
        }
    }

    private var heldSources: some Sequence<RoutedPoint<IoSource>> {
        members.values.lazy.flatMap(\.sources).filter { sources[$0.id]?.first === $0 }
    }

    // MARK: - What changes

    /// Takes a node, or its newer version, and decides on the pairs that it is part of.
    package mutating func take(
        _ node: IoNode,
        json: JSONView,
        _ verdict: Verdict
    ) throws(Refusal) -> IoAssociationChanges {
        let old = members[node.objectId]
        guard old != nil || members.count < IoRouter.maximumNodes else { throw .tooManyNodes }
        let count = node.ioSources.count + node.ioActors.count - (old.map { $0.sources.count + $0.actors.count } ?? 0)
        guard pointCount + count <= IoRouter.maximumPoints else { throw .tooManyPoints }
        let bytes = byteCount + json.retainedBytes - (old?.node.json.retainedBytes ?? 0)
        guard bytes <= IoRouter.maximumBytes else { throw .tooManyBytes }
        if old == nil { arrivals += 1 }
        let member = Member(
            RoutedNode(node, json: json),
            arrival: old?.arrival ?? arrivals
        )
        return replace(node.objectId, old, with: member, verdict)
    }

    /// Lets a node go, and the associations that it is part of.
    package mutating func remove(_ id: CoatyUUID, _ verdict: Verdict) -> IoAssociationChanges {
        guard let old = members[id] else { return IoAssociationChanges() }
        return replace(id, old, with: nil, verdict)
    }

    /// Lets everything go.
    mutating func removeAll() -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        changes.removed = associations.map { IoAssociation(ioSourceId: $0.ioSourceId, ioActorId: $0.ioActorId) }
        self = IoRoutingTable(namespace: namespace)
        return changes
    }

    /// Decides anew on all pairs, or on those of some kinds.
    package mutating func evaluate(
        where isTouched: (PointKind) -> Bool = { _ in true },
        _ verdict: Verdict
    ) -> IoAssociationChanges {
        isFull = false
        var run = Run()
        let touched = Set(compatible.keys.filter(isTouched))
        guard !touched.isEmpty else { return IoAssociationChanges() }
        for source in Array(heldSources) where touched.contains(source.kind) { decide(source, &run, verdict) }
        return finish(run)
    }

    /// What deciding anew would change.
    package func preview(_ verdict: Verdict) -> IoAssociationChanges {
        var copy = self
        return copy.evaluate(verdict)
    }

    // MARK: - How

    /// What has changed so far.
    fileprivate struct Run {
        struct Edit {
            let route: String?
            let updateRate: Int?
            var added: OrderedSet<CoatyUUID> = []
            var removed: OrderedSet<CoatyUUID> = []
        }

        var edits: OrderedDictionary<CoatyUUID, Edit> = [:]
    }

    private mutating func replace(
        _ id: CoatyUUID,
        _ old: Member?,
        with new: Member?,
        _ verdict: Verdict
    ) -> IoAssociationChanges {
        isFull = false
        members[id] = new
        pointCount += (new?.pointCount ?? 0) - (old?.pointCount ?? 0)
        byteCount += (new?.node.json.retainedBytes ?? 0) - (old?.node.json.retainedBytes ?? 0)
        let changedSources = Self.exchange(old?.sources ?? [], new?.sources ?? [], in: &sources)
        let changedActors = Self.exchange(old?.actors ?? [], new?.actors ?? [], in: &actors)
        for (before, after) in changedSources { index(before, after, \.sources) }
        for (before, after) in changedActors { index(before, after, \.actors) }

        var run = Run()
        for (before, after) in changedActors {
            if let before, after?.kind != before.kind {
                for source in compatible[before.kind]?.sources ?? [] { set(source, before, false, &run) }
            }
        }
        for (before, after) in changedSources {
            if let before, after?.kind != before.kind || after?.node.node.objectId != before.node.node.objectId {
                dissolve(before, &run)
            }
            if let after { decide(after, &run, verdict) }
        }
        for (_, after) in changedActors {
            guard let after else { continue }
            for source in compatible[after.kind]?.sources ?? [] { set(source, after, verdict(source, after), &run) }
        }
        for kind in Set(changedSources.compactMap(\.before?.kind) + changedActors.compactMap(\.before?.kind)) {
            if let left = compatible[kind], left.sources.isEmpty, left.actors.isEmpty { compatible[kind] = nil }
        }
        return finish(run)
    }

    /// Exchanges the points of a node.
    ///
    /// - Returns: for each id that belongs to another point than before, both.
    private static func exchange<Point: IoPoint>(
        _ old: [RoutedPoint<Point>],
        _ new: [RoutedPoint<Point>],
        in claims: inout [CoatyUUID: [RoutedPoint<Point>]]
    ) -> [(before: RoutedPoint<Point>?, after: RoutedPoint<Point>?)] {
        var before: OrderedDictionary<CoatyUUID, RoutedPoint<Point>?> = [:]
        for point in old + new where before[point.id] == nil {
            before.updateValue(claims[point.id]?.first, forKey: point.id)
        }
        for point in old { claims[point.id]?.removeAll { $0 === point } }
        for point in new {
            let all = claims[point.id, default: []]
            claims[point.id, default: []]
                .insert(point, at: all.firstIndex { $0.arrival > point.arrival } ?? all.endIndex)
        }
        return before.compactMap { id, before in
            if claims[id]?.isEmpty ?? false { claims[id] = nil }
            let after = claims[id]?.first
            return before === after ? nil : (before, after)
        }
    }

    private mutating func index<Point>(
        _ before: RoutedPoint<Point>?,
        _ after: RoutedPoint<Point>?,
        _ points: WritableKeyPath<Compatible, [RoutedPoint<Point>]>
    ) {
        if let before, let position = compatible[before.kind]?[keyPath: points].firstIndex(where: { $0 === before }) {
            if let after, after.kind == before.kind {
                compatible[before.kind]?[keyPath: points][position] = after
                return
            }
            compatible[before.kind]?[keyPath: points].remove(at: position)
        }
        if let after { compatible[after.kind, default: Compatible()][keyPath: points].append(after) }
    }

    private mutating func decide(_ source: RoutedPoint<IoSource>, _ run: inout Run, _ verdict: Verdict) {
        for actor in compatible[source.kind]?.actors ?? [] { set(source, actor, verdict(source, actor), &run) }
    }

    /// Associates a pair or does not, and notes what that changes.
    private mutating func set(
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>,
        _ isAssociated: Bool,
        _ run: inout Run
    ) {
        let old = routed[source.id]?.actors[actor.id]
        guard isAssociated else {
            guard old != nil else { return }
            note(source.id, &run) { $0.remove(actor.id) }
            routed[source.id]?.actors[actor.id] = nil
            associationCount -= 1
            return
        }
        let rate = [source.point.updateRate, actor.point.updateRate].compactMap(\.self).max()
        if let old {
            guard old != rate else { return }
            note(source.id, &run) { _ in }
        } else {
            guard associationCount < IoRouter.maximumAssociations else {
                isFull = true
                return
            }
            note(source.id, &run) { $0.add(actor.id) }
            associationCount += 1
        }
        if routed[source.id] == nil { routed[source.id] = Routed(route: route(of: source)) }
        routed[source.id]?.actors.updateValue(rate, forKey: actor.id)
    }

    /// Lets a source go.
    private mutating func dissolve(_ source: RoutedPoint<IoSource>, _ run: inout Run) {
        guard let old = routed[source.id] else { return }
        note(source.id, &run) { edit in for actorId in old.actors.keys { edit.remove(actorId) } }
        associationCount -= old.actors.count
        routed[source.id] = nil
    }

    private func note(_ sourceId: CoatyUUID, _ run: inout Run, _ change: (inout Run.Edit) -> Void) {
        let old = routed[sourceId]
        change(&run.edits[sourceId, default: Run.Edit(route: old?.route, updateRate: old?.updateRate)])
    }

    private mutating func finish(_ run: Run) -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        for (sourceId, edit) in run.edits {
            changes.removed += edit.removed.map { IoAssociation(ioSourceId: sourceId, ioActorId: $0) }
            guard let new = routed[sourceId] else { continue }
            let updateRate = new.actors.values.compactMap(\.self).max()
            routed[sourceId]?.updateRate = updateRate
            let isOther = updateRate != edit.updateRate || new.route != edit.route
            for actorId in new.actors.keys {
                let association = IoAssociation(ioSourceId: sourceId, ioActorId: actorId, updateRate: updateRate)
                if edit.added.contains(actorId) {
                    changes.added.append(association)
                } else if isOther {
                    changes.changed.append(association)
                }
            }
        }
        return changes
    }

    private func route(of source: RoutedPoint<IoSource>) -> String {
        if let route = source.point.externalRoute, RawTopic.isIoRoute(route) { return route }
        return CommunicationTopic.publication(.ioValue, namespace: namespace, sourceId: source.id)
    }
}

extension IoRoutingTable.Run.Edit {
    fileprivate mutating func add(_ actorId: CoatyUUID) {
        if removed.remove(actorId) == nil { added.append(actorId) }
    }

    fileprivate mutating func remove(_ actorId: CoatyUUID) {
        if added.remove(actorId) == nil { removed.append(actorId) }
    }
}

extension IoRoutingTable.Member {
    fileprivate var pointCount: Int { sources.count + actors.count }

    fileprivate init(_ node: RoutedNode, arrival: Int) {
        self.init(
            arrival: arrival,
            sources: zip(node.node.ioSources, node.json["ioSources"]?.elements.map(\.self) ?? []).map {
                RoutedPoint($0, json: $1, node: node, arrival: arrival)
            },
            actors: zip(node.node.ioActors, node.json["ioActors"]?.elements.map(\.self) ?? []).map {
                RoutedPoint($0, json: $1, node: node, arrival: arrival)
            },
            node: node
        )
    }
}
