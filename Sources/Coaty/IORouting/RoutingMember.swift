/// A node of a routing table and its points. Points with duplicate ids are ignored.
struct RoutingMember: Sendable {
    let node: RoutedNode
    /// Number of nodes that were added before it.
    let arrival: Int
    let sources: [RoutedPoint<IoSource>]
    let actors: [RoutedPoint<IoActor>]

    var pointCount: Int { sources.count + actors.count }
    var byteCount: Int { node.json.retainedBytes }

    init(_ node: IoNode, json: JSONView, arrival: Int) {
        self.node = RoutedNode(node.objectId, json: json)
        self.arrival = arrival
        sources = Self.points(node.ioSources, json["ioSources"], self.node, arrival)
        actors = Self.points(node.ioActors, json["ioActors"], self.node, arrival)
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
