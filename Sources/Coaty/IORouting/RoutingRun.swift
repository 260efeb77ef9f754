import OrderedCollections

/// What has changed so far while a routing table decides anew.
struct RoutingRun {
    /// Actors, and the order in which they are told.
    struct Actors {
        private var places: [CoatyUUID: Place] = [:]

        var inOrder: [CoatyUUID] { places.sorted { $0.value < $1.value }.map(\.key) }

        func contains(_ id: CoatyUUID) -> Bool { places[id] != nil }

        mutating func insert(_ id: CoatyUUID, _ place: Place) { places[id] = place }

        /// - Returns: whether it was there.
        mutating func remove(_ id: CoatyUUID) -> Bool { places.removeValue(forKey: id) != nil }
    }

    /// What has changed for a source.
    struct Edit {
        /// The route and the rate before.
        let route: String?
        let updateRate: Int?
        /// Whether the source is that of another node than before, whose agent knows nothing of its associations.
        var hasMoved = false
        private(set) var added = Actors()
        private(set) var removed = Actors()
        /// Kept, with an actor of another node than before.
        private(set) var again = Actors()
        /// The largest rate that came.
        private(set) var largest: Int?
        /// Whether a pair went that had the largest rate of all.
        private(set) var hasLostLargest = false

        init(route: String?, updateRate: Int?) {
            self.route = route
            self.updateRate = updateRate
        }

        mutating func add(_ actorId: CoatyUUID, _ place: Place, rate: Int?) {
            if !removed.remove(actorId) { added.insert(actorId, place) }
            largest = [largest, rate].compactMap(\.self).max()
        }

        mutating func remove(_ actorId: CoatyUUID, _ place: Place, rate: Int?) {
            if !added.remove(actorId) { removed.insert(actorId, place) }
            lose(rate)
        }

        mutating func exchange(_ old: Int?, for new: Int?) {
            guard old != new else { return }
            lose(old)
            largest = [largest, new].compactMap(\.self).max()
        }

        mutating func tellAgain(_ actorId: CoatyUUID, _ place: Place) { again.insert(actorId, place) }

        private mutating func lose(_ rate: Int?) {
            guard let rate else { return }
            if rate >= (updateRate ?? 0) || rate >= (largest ?? .max) { hasLostLargest = true }
        }
    }

    /// By the source, in the order in which they were touched.
    var edits: OrderedDictionary<CoatyUUID, Edit> = [:]
}

/// A node of a routing table and its points, of which each id counts once.
struct RoutingMember {
    let node: RoutedNode
    /// How many nodes had come before it.
    let arrival: Int
    let sources: [RoutedPoint<IoSource>]
    let actors: [RoutedPoint<IoActor>]

    var pointCount: Int { sources.count + actors.count }
    var byteCount: Int { node.json.retainedBytes }

    init(_ node: RoutedNode, arrival: Int) {
        self.node = node
        self.arrival = arrival
        sources = Self.points(node.node.ioSources, node.json["ioSources"], node, arrival)
        actors = Self.points(node.node.ioActors, node.json["ioActors"], node, arrival)
    }

    private static func points<Point: IoPoint>(
        _ points: [Point],
        _ json: JSONView?,
        _ node: RoutedNode,
        _ arrival: Int
    ) -> [RoutedPoint<Point>] {
        guard let json else { return [] }
        var seen: Set<CoatyUUID> = []
        return zip(points, json.elements).enumerated().compactMap { index, point in
            guard seen.insert(point.0.objectId).inserted else { return nil }
            return RoutedPoint(point.0, json: point.1, node: node, place: Place(arrival: arrival, index: index))
        }
    }
}
