import OrderedCollections

/// The nodes of an IO context and the associations that were decided for them.
///
/// Whatever changes costs what it touches: sources and actors are found by their kind, a node that changes has its own pairs
/// decided anew, and a verdict that stays makes no change.
package struct IoRoutingTable {
    /// Says whether a source and an actor of the same kind are to be associated.
    package typealias Verdict = (_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool

    /// Why a node is not taken.
    package enum Refusal: Error { case tooManyNodes, tooManyPoints, tooManyPairs, tooManyBytes }

    /// The points of one kind, by their ids.
    private struct Compatible {
        var sources: [CoatyUUID: RoutedPoint<IoSource>] = [:]
        var actors: [CoatyUUID: RoutedPoint<IoActor>] = [:]

        var pairCount: Int { sources.count * actors.count }
    }

    /// What was decided for a source.
    private struct Routed {
        /// Made once and kept as long as the source is there.
        let route: String
        /// The actors, each with the rate of the pair.
        var actors: [CoatyUUID: Int?] = [:]
        /// The largest rate of all pairs.
        var updateRate: Int?
    }

    /// Makes the route of a source.
    package typealias MakeRoute = @Sendable (_ sourceId: CoatyUUID, _ externalRoute: String?) -> String

    private let makeRoute: MakeRoute
    private var members: [CoatyUUID: RoutingMember] = [:]
    private var arrivals = 0
    private var pointCount = 0
    /// Of the pairs that are decided on.
    private var pairCount = 0
    /// Of the texts of the nodes.
    private var byteCount = 0
    /// Who has a point of this id. It belongs to the node that came first; the others get it when that goes.
    private var sources: [CoatyUUID: [RoutedPoint<IoSource>]] = [:]
    private var actors: [CoatyUUID: [RoutedPoint<IoActor>]] = [:]
    private var compatible: [PointKind: Compatible] = [:]
    private var routed: [CoatyUUID: Routed] = [:]
    private(set) var associationCount = 0
    /// Whether a pair was not associated because there were too many, since all pairs were last decided.
    private(set) var isFull = false

    package init(makeRoute: @escaping MakeRoute) {
        self.makeRoute = makeRoute
    }

    // MARK: - What there is

    /// The nodes in the order in which they came.
    package var nodes: [RoutedNode] { orderedMembers.map(\.node) }

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
            guard let routed = routed[source.id] else { return [IoAssociation]() }
            return ordered(routed.actors.keys).map {
                IoAssociation(ioSourceId: source.id, ioActorId: $0, updateRate: routed.updateRate)
            }
        }
    }

    private var orderedMembers: [RoutingMember] { members.values.sorted { $0.arrival < $1.arrival } }

    private var heldSources: some Sequence<RoutedPoint<IoSource>> {
        orderedMembers.lazy.flatMap(\.sources).filter { sources[$0.id]?.first === $0 }
    }

    private func ordered(_ actorIds: some Sequence<CoatyUUID>) -> [CoatyUUID] {
        actorIds.compactMap(actor).sorted { $0.place < $1.place }.map(\.id)
    }

    // MARK: - What changes

    /// Takes a node, or its newer version, and decides on the pairs that it is part of.
    package mutating func take(
        _ node: IoNode,
        json: JSONView,
        _ verdict: Verdict
    ) throws(Refusal) -> IoAssociationChanges {
        let old = members[node.objectId]
        let new = RoutingMember(RoutedNode(node, json: json), arrival: old?.arrival ?? arrivals + 1)
        guard old != nil || members.count < IoRouter.maximumNodes else { throw .tooManyNodes }
        guard pointCount + new.pointCount - (old?.pointCount ?? 0) <= IoRouter.maximumPoints else {
            throw .tooManyPoints
        }
        guard byteCount + new.byteCount - (old?.byteCount ?? 0) <= IoRouter.maximumBytes else { throw .tooManyBytes }
        guard pairCount(exchanging: old, for: new) <= IoRouter.maximumPairs else { throw .tooManyPairs }
        if old == nil { arrivals += 1 }
        return replace(node.objectId, old, with: new, verdict)
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
        self = IoRoutingTable(makeRoute: makeRoute)
        return changes
    }

    /// Decides anew on all pairs, or on those of some kinds.
    package mutating func evaluate(
        where isTouched: (PointKind) -> Bool = { _ in true },
        _ verdict: Verdict
    ) -> IoAssociationChanges {
        isFull = false
        // Asked once a kind, not once a source.
        let touched = Set(compatible.keys.filter(isTouched))
        var run = RoutingRun()
        if !touched.isEmpty {
            for source in Array(heldSources) where touched.contains(source.kind) { decide(source, &run, verdict) }
        }
        return finish(run)
    }

    /// What deciding anew would change.
    package func preview(_ verdict: Verdict) -> IoAssociationChanges {
        var copy = self
        return copy.evaluate(verdict)
    }

    // MARK: - How

    /// How many pairs there would be to decide on, or more where others have the same points.
    private func pairCount(exchanging old: RoutingMember?, for new: RoutingMember) -> Int {
        var counts: [PointKind: (sources: Int, actors: Int)] = [:]
        for (member, sign) in [(old, -1), (new, 1)] {
            for source in member?.sources ?? [] { counts[source.kind, default: (0, 0)].sources += sign }
            for actor in member?.actors ?? [] { counts[actor.kind, default: (0, 0)].actors += sign }
        }
        return counts.reduce(pairCount) { count, more in
            let now = compatible[more.key] ?? Compatible()
            let then = (now.sources.count + more.value.sources) * (now.actors.count + more.value.actors)
            return count + then - now.pairCount
        }
    }

    private mutating func replace(
        _ id: CoatyUUID,
        _ old: RoutingMember?,
        with new: RoutingMember?,
        _ verdict: Verdict
    ) -> IoAssociationChanges {
        members[id] = new
        pointCount += (new?.pointCount ?? 0) - (old?.pointCount ?? 0)
        byteCount += (new?.byteCount ?? 0) - (old?.byteCount ?? 0)
        let changedSources = Self.exchange(old?.sources ?? [], new?.sources ?? [], in: &sources)
        let changedActors = Self.exchange(old?.actors ?? [], new?.actors ?? [], in: &actors)
        for (before, after) in changedSources { index(before, after, \.sources) }
        for (before, after) in changedActors { index(before, after, \.actors) }

        var run = RoutingRun()
        for (before, after) in changedActors {
            if let before, after?.kind != before.kind {
                for source in sourcesByPlace(before.kind) { set(source, before, false, &run) }
            }
        }
        for (before, after) in changedSources {
            if let before, after?.kind != before.kind || !before.isOfSameNode(as: after) { dissolve(before, &run) }
            if let after { decide(after, &run, verdict) }
        }
        for (before, after) in changedActors {
            guard let after else { continue }
            let hasMoved = before.map { !$0.isOfSameNode(as: after) } ?? false
            for source in sourcesByPlace(after.kind) {
                set(source, after, verdict(source, after), hasMoved: hasMoved, &run)
            }
        }
        for kind in Set(changedSources.compactMap(\.before?.kind) + changedActors.compactMap(\.before?.kind)) {
            if let left = compatible[kind], left.sources.isEmpty, left.actors.isEmpty { compatible[kind] = nil }
        }
        return finish(run)
    }

    /// Exchanges the points of a node.
    ///
    /// - Returns: for each id that belongs to another point than before, both, in the order of the points.
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
            let index = claims[point.id]?.firstIndex { $0.place > point.place }
            claims[point.id, default: []].insert(point, at: index ?? claims[point.id]?.endIndex ?? 0)
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
        _ points: WritableKeyPath<Compatible, [CoatyUUID: RoutedPoint<Point>]>
    ) {
        if let before {
            pairCount -= compatible[before.kind]?.pairCount ?? 0
            compatible[before.kind]?[keyPath: points][before.id] = nil
            pairCount += compatible[before.kind]?.pairCount ?? 0
        }
        if let after {
            pairCount -= compatible[after.kind]?.pairCount ?? 0
            compatible[after.kind, default: Compatible()][keyPath: points][after.id] = after
            pairCount += compatible[after.kind]?.pairCount ?? 0
        }
    }

    private func sourcesByPlace(_ kind: PointKind) -> [RoutedPoint<IoSource>] {
        (compatible[kind]?.sources.values).map { $0.sorted { $0.place < $1.place } } ?? []
    }

    private mutating func decide(_ source: RoutedPoint<IoSource>, _ run: inout RoutingRun, _ verdict: Verdict) {
        guard let actors = compatible[source.kind]?.actors.values else { return }
        for actor in actors { set(source, actor, verdict(source, actor), &run) }
    }

    /// Associates a pair or does not, and notes what that changes.
    private mutating func set(
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>,
        _ isAssociated: Bool,
        hasMoved: Bool = false,
        _ run: inout RoutingRun
    ) {
        let old = routed[source.id]?.actors[actor.id]
        guard isAssociated else {
            guard let old else { return }
            note(source.id, &run) { $0.remove(actor.id, actor.place, rate: old) }
            routed[source.id]?.actors[actor.id] = nil
            associationCount -= 1
            return
        }
        let rate = [source.point.updateRate, actor.point.updateRate].compactMap(\.self).max()
        if let old {
            guard old != rate || hasMoved else { return }
            note(source.id, &run) { edit in
                edit.exchange(old, for: rate)
                if hasMoved { edit.tellAgain(actor.id, actor.place) }
            }
        } else {
            guard associationCount < IoRouter.maximumAssociations else {
                isFull = true
                return
            }
            note(source.id, &run) { $0.add(actor.id, actor.place, rate: rate) }
            associationCount += 1
        }
        if routed[source.id] == nil { routed[source.id] = Routed(route: route(of: source)) }
        routed[source.id]?.actors.updateValue(rate, forKey: actor.id)
    }

    /// Lets a source go.
    private mutating func dissolve(_ source: RoutedPoint<IoSource>, _ run: inout RoutingRun) {
        guard let old = routed[source.id] else { return }
        let places = old.actors.keys.map { ($0, actor($0)?.place) }
        note(source.id, &run) { edit in
            edit.hasMoved = true
            for (actorId, place) in places {
                edit.remove(actorId, place ?? Place(arrival: 0, index: 0), rate: old.updateRate)
            }
        }
        associationCount -= old.actors.count
        routed[source.id] = nil
    }

    private func note(_ sourceId: CoatyUUID, _ run: inout RoutingRun, _ change: (inout RoutingRun.Edit) -> Void) {
        let old = routed[sourceId]
        change(&run.edits[sourceId, default: RoutingRun.Edit(route: old?.route, updateRate: old?.updateRate)])
    }

    private mutating func finish(_ run: RoutingRun) -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        for (sourceId, edit) in run.edits {
            for actorId in edit.removed.inOrder {
                changes.removed.append(IoAssociation(ioSourceId: sourceId, ioActorId: actorId))
            }
            guard let new = routed[sourceId] else { continue }
            let updateRate =
                edit.hasLostLargest
                ? new.actors.values.compactMap(\.self).max() : [edit.updateRate, edit.largest].compactMap(\.self).max()
            routed[sourceId]?.updateRate = updateRate
            func association(_ actorId: CoatyUUID) -> IoAssociation {
                IoAssociation(ioSourceId: sourceId, ioActorId: actorId, updateRate: updateRate)
            }
            changes.added += edit.added.inOrder.map(association)
            // An association that is kept is told again where it is another one, or an agent does not know of it.
            if updateRate != edit.updateRate || new.route != edit.route || edit.hasMoved {
                let kept = new.actors.keys.filter { !edit.added.contains($0) }
                changes.changed += ordered(kept).map(association)
            } else {
                changes.changed += edit.again.inOrder.filter { !edit.added.contains($0) }.map(association)
            }
        }
        return changes
    }

    private func route(of source: RoutedPoint<IoSource>) -> String {
        makeRoute(source.id, source.point.externalRoute)
    }
}

extension RoutedPoint {
    fileprivate func isOfSameNode(as other: RoutedPoint?) -> Bool {
        node.node.objectId == other?.node.node.objectId
    }
}
