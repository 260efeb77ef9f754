import HashTreeCollections
import OrderedCollections

/// The nodes of an IO context and the associations that were decided for them.
///
/// The cost of a change depends only on the affected pairs: sources and actors are found by their kind, only the pairs
/// of a changed node are decided again, and an unchanged verdict makes no change. Copies share their storage, so a copy
/// can be changed while others read the original.
struct IoRoutingTable: Sendable {
    /// Returns the way to decide on pairs of a kind.
    typealias Verdicts = @Sendable (PointKind) -> RoutingVerdict

    /// The reason why a node is not accepted.
    enum Refusal: Error { case tooManyNodes, tooManyPoints, tooManyPairs, tooManyBytes, tooMuchWork }

    /// The points of one kind, by their ids.
    struct Compatible {
        var sources: TreeDictionary<CoatyUUID, RoutedPoint<IoSource>> = [:]
        var actors: TreeDictionary<CoatyUUID, RoutedPoint<IoActor>> = [:]

        var pairCount: Int { sources.count * actors.count }
    }

    /// The associations of a source.
    struct Routed {
        /// Constant as long as the source exists.
        let route: String
        /// The actors, each with the rate of the pair.
        var actors: TreeDictionary<CoatyUUID, Int?> = [:]
        /// The largest rate of all pairs.
        var updateRate: Int?
    }

    /// Makes the route of a source, from its external route if it has one.
    typealias MakeRoute = @Sendable (_ sourceId: CoatyUUID, _ externalRoute: String?) -> String

    let stepsPerRun: Int
    private let makeRoute: MakeRoute
    private var members: TreeDictionary<CoatyUUID, RoutingMember> = [:]
    private var arrivals = 0
    private var pointCount = 0
    /// The number of compatible pairs.
    private(set) var pairCount = 0
    /// The size of the JSON of all nodes.
    private var byteCount = 0
    /// The points that have an id, in the order of their nodes. Only the first one is used; if its node is removed, the
    /// next one is used.
    private var sources: TreeDictionary<CoatyUUID, [RoutedPoint<IoSource>]> = [:]
    private var actors: TreeDictionary<CoatyUUID, [RoutedPoint<IoActor>]> = [:]
    var compatible: TreeDictionary<PointKind, Compatible> = [:]
    var routed: TreeDictionary<CoatyUUID, Routed> = [:]
    var associationCount = 0
    /// Whether a pair was not associated because of the limits, since all pairs were last decided.
    var isFull = false
    /// A pair that the last change has left without an association, because deciding on it takes too much work.
    var excess: RoutingExcess?

    /// - Parameter stepsPerRun: the work budget of a change, in steps of about 50 ns; each pair adds to it.
    init(stepsPerRun: Int = RoutingWork.stepsPerRun, makeRoute: @escaping MakeRoute) {
        self.stepsPerRun = stepsPerRun
        self.makeRoute = makeRoute
    }

    // MARK: - Reading

    /// The nodes in the order in which they were added.
    var nodes: [RoutedNode] { orderedMembers.map(\.node) }

    func node(_ id: CoatyUUID) -> RoutedNode? { members[id]?.node }

    /// Returns the source with an id.
    func source(_ id: CoatyUUID) -> RoutedPoint<IoSource>? { sources[id]?.first }

    /// Returns the actor with an id.
    func actor(_ id: CoatyUUID) -> RoutedPoint<IoActor>? { actors[id]?.first }

    /// Returns whether a node has a source or an actor.
    func contains(point id: CoatyUUID) -> Bool { sources[id] != nil || actors[id] != nil }

    /// Returns the sources and actors of a node.
    func points(of node: CoatyUUID) -> [CoatyUUID] {
        members[node].map { $0.sources.map(\.id) + $0.actors.map(\.id) } ?? []
    }

    /// Returns the associations of a source or an actor, except those with points of some other nodes, in any order.
    func associations(of point: CoatyUUID, except others: Set<CoatyUUID>) -> [IoAssociation] {
        var associations: [IoAssociation] = []
        if let routed = routed[point] {
            for actorId in routed.actors.keys {
                if !others.isEmpty, let node = actor(actorId)?.node.id, others.contains(node) { continue }
                associations.append(
                    IoAssociation(ioSourceId: point, ioActorId: actorId, updateRate: routed.updateRate)
                )
            }
        }
        guard let kind = actor(point)?.kind, let sources = compatible[kind]?.sources else { return associations }
        for source in sources.values {
            guard let routed = routed[source.id], routed.actors[point] != nil, !others.contains(source.node.id) else {
                continue
            }
            associations.append(IoAssociation(ioSourceId: source.id, ioActorId: point, updateRate: routed.updateRate))
        }
        return associations
    }

    /// Returns the route of a source and the rate of an association; nil if there is none.
    func association(_ sourceId: CoatyUUID, _ actorId: CoatyUUID) -> (route: String, updateRate: Int?)? {
        guard let routed = routed[sourceId], routed.actors[actorId] != nil else { return nil }
        return (routed.route, routed.updateRate)
    }

    /// All associations, in the order of the nodes.
    var associations: [IoAssociation] {
        heldSources.flatMap { source in
            guard let routed = routed[source.id] else { return [IoAssociation]() }
            return ordered(routed.actors.keys).map {
                IoAssociation(ioSourceId: source.id, ioActorId: $0, updateRate: routed.updateRate)
            }
        }
    }

    private var orderedMembers: [RoutingMember] { members.values.sorted { $0.arrival < $1.arrival } }

    /// The sources that are used, in the order of the nodes.
    var heldSources: some Sequence<RoutedPoint<IoSource>> {
        orderedMembers.lazy.flatMap(\.sources).filter { sources[$0.id]?.first === $0 }
    }

    /// Returns actors in the order of the nodes.
    func ordered(_ actorIds: some Sequence<CoatyUUID>) -> [CoatyUUID] {
        actorIds.compactMap(actor).sorted { $0.place < $1.place }.map(\.id)
    }

    func route(of source: RoutedPoint<IoSource>) -> String {
        makeRoute(source.id, source.externalRoute)
    }

    // MARK: - Nodes

    /// The points of a node that have started or stopped being used, in the order of the points.
    struct ChangedPoints {
        typealias Points<Point: IoPoint> = [(before: RoutedPoint<Point>?, after: RoutedPoint<Point>?)]

        let sources: Points<IoSource>
        let actors: Points<IoActor>
    }

    /// Adds or updates a node, and leaves its pairs undecided.
    mutating func exchange(_ node: IoNode, json: JSONView) throws(Refusal) -> ChangedPoints {
        let old = members[node.objectId]
        let new = RoutingMember(node, json: json, arrival: old?.arrival ?? arrivals + 1)
        guard old != nil || members.count < IoRouter.maximumNodes else { throw .tooManyNodes }
        guard pointCount + new.pointCount - (old?.pointCount ?? 0) <= IoRouter.maximumPoints else {
            throw .tooManyPoints
        }
        guard byteCount + new.byteCount - (old?.byteCount ?? 0) <= IoRouter.maximumBytes else { throw .tooManyBytes }
        guard pairCount(exchanging: old, for: new) <= IoRouter.maximumPairs else { throw .tooManyPairs }
        if old == nil { arrivals += 1 }
        return exchange(node.objectId, old, for: new)
    }

    /// Removes a node and leaves its pairs unchanged.
    ///
    /// - Returns: nil if there is no such node.
    mutating func removeNode(_ id: CoatyUUID) -> ChangedPoints? {
        members[id].map { exchange(id, $0, for: nil) }
    }

    /// Removes all nodes.
    ///
    /// - Returns: the dissolved associations.
    mutating func removeAll() -> IoAssociationChanges {
        var changes = IoAssociationChanges()
        changes.removed = associations.map { IoAssociation(ioSourceId: $0.ioSourceId, ioActorId: $0.ioActorId) }
        self = IoRoutingTable(stepsPerRun: stepsPerRun, makeRoute: makeRoute)
        return changes
    }

    private mutating func exchange(_ id: CoatyUUID, _ old: RoutingMember?, for new: RoutingMember?) -> ChangedPoints {
        members[id] = new
        pointCount += (new?.pointCount ?? 0) - (old?.pointCount ?? 0)
        byteCount += (new?.byteCount ?? 0) - (old?.byteCount ?? 0)
        let changed = ChangedPoints(
            sources: Self.exchange(old?.sources ?? [], new?.sources ?? [], in: &sources),
            actors: Self.exchange(old?.actors ?? [], new?.actors ?? [], in: &actors)
        )
        for (before, after) in changed.sources { index(before, after, \.sources) }
        for (before, after) in changed.actors { index(before, after, \.actors) }
        return changed
    }

    /// Returns the number of compatible pairs after a change; an upper bound if other nodes have the same points.
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

    /// Replaces the points of a node.
    ///
    /// - Returns: for each id that now belongs to another point, the old and the new point, in the order of the points.
    private static func exchange<Point: IoPoint>(
        _ old: [RoutedPoint<Point>],
        _ new: [RoutedPoint<Point>],
        in claims: inout TreeDictionary<CoatyUUID, [RoutedPoint<Point>]>
    ) -> ChangedPoints.Points<Point> {
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
        _ points: WritableKeyPath<Compatible, TreeDictionary<CoatyUUID, RoutedPoint<Point>>>
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
}
