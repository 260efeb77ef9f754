/// A source or an actor of a node.
final class RoutedPoint<Point: IoPoint>: Sendable {
    let id: CoatyUUID
    let json: JSONView
    let node: RoutedNode
    /// The position among all points. Nodes are in the order in which they were added.
    let place: Place
    let kind: PointKind
    let updateRate: Int?
    /// The external route of a source.
    let externalRoute: String?

    init(_ point: Point, json: JSONView, node: RoutedNode, place: Place) {
        self.json = json
        self.node = node
        self.place = place
        id = point.objectId
        kind = PointKind(valueType: WireName(point.valueType), isRaw: point.useRawIoValues ?? false)
        updateRate = point.updateRate
        externalRoute = (point as? IoSource)?.externalRoute
    }

    func isOfSameNode(as other: RoutedPoint?) -> Bool { node.id == other?.node.id }
}

extension RoutedPoint where Point == IoSource {
    /// The typed source.
    @ControllerActor var point: IoSource? { node.node?.ioSources[place.index] }
}

extension RoutedPoint where Point == IoActor {
    /// The typed actor.
    @ControllerActor var point: IoActor? { node.node?.ioActors[place.index] }
}

/// The position of a point among all points of its kind.
struct Place: Comparable {
    /// Number of nodes that were added before the point's node.
    let arrival: Int
    /// The index in its node.
    let index: Int

    static func < (left: Place, right: Place) -> Bool {
        left.arrival == right.arrival ? left.index < right.index : left.arrival < right.arrival
    }
}

/// The properties that two points must have in common to be associated.
struct PointKind: Hashable, Sendable {
    let valueType: WireName
    let isRaw: Bool
}
