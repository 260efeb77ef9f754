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
    /// How many nodes had come before its own.
    let arrival: Int
    let kind: PointKind

    var id: CoatyUUID { point.objectId }

    init(_ point: Point, json: JSONView, node: RoutedNode, arrival: Int) {
        self.point = point
        self.json = json
        self.node = node
        self.arrival = arrival
        kind = PointKind(valueType: TopicLevel(point.valueType), isRaw: point.useRawIoValues ?? false)
    }
}

/// What two points must have in common to be associated.
package struct PointKind: Hashable {
    package let valueType: TopicLevel
    let isRaw: Bool
}
