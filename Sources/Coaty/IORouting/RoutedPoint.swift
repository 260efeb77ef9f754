/// An IO node as a router has it: the object for rules in Swift, its JSON for declarative ones.
package final class RoutedNode {
    package let node: IoNode
    package let json: JSONView

    /// - Parameter json: the node as it stands in the payload that it came in.
    package init(_ node: IoNode, json: JSONView) {
        self.node = node
        self.json = json
    }
}

/// A source or an actor of a node.
package final class RoutedPoint<Point: IoPoint> {
    package let point: Point
    package let json: JSONView
    package let node: RoutedNode
    /// Its place among all points: nodes are in the order in which they came.
    let place: Place
    let kind: PointKind

    var id: CoatyUUID { point.objectId }

    init(_ point: Point, json: JSONView, node: RoutedNode, place: Place) {
        self.point = point
        self.json = json
        self.node = node
        self.place = place
        kind = PointKind(valueType: WireName(point.valueType), isRaw: point.useRawIoValues ?? false)
    }
}

/// Where a point is among all of its kind.
struct Place: Comparable {
    /// How many nodes had come before its own.
    let arrival: Int
    /// The place in its node.
    let index: Int

    static func < (left: Place, right: Place) -> Bool {
        left.arrival == right.arrival ? left.index < right.index : left.arrival < right.arrival
    }
}

/// What two points must have in common to be associated.
package struct PointKind: Hashable {
    package let valueType: WireName
    let isRaw: Bool
}
