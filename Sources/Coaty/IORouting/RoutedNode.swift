/// An IO node that a router routes.
///
/// Filter conditions read its JSON on any thread. Application code gets the typed object, which is isolated to the
/// ``ControllerActor``.
final class RoutedNode: Sendable {
    let id: CoatyUUID
    let json: JSONView
    /// The agent of the node.
    let parentObjectId: CoatyUUID?
    @ControllerActor private var decoded: IoNode?

    /// - Parameter json: the node as a view of the received payload.
    init(_ id: CoatyUUID, json: JSONView) {
        self.id = id
        self.json = json
        parentObjectId = json.parentObjectId
    }

    /// The typed node, decoded on first use. Nil only if its class decodes the JSON the first time but not the second
    /// time.
    @ControllerActor var node: IoNode? {
        if decoded == nil { decoded = try? PayloadCoder.object(json) as? IoNode }
        return decoded
    }
}

extension JSONView {
    /// The parent of an object in JSON.
    var parentObjectId: CoatyUUID? { self["parentObjectId"]?.string.map(CoatyUUID.init(wire:)) }
}
