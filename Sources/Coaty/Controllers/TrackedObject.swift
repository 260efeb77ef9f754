/// The checked bytes of an object, without the event that contained it.
struct TrackedObject: Sendable {
    let objectId: CoatyUUID
    let parentObjectId: CoatyUUID?
    private let bytes: [UInt8]

    /// Creates a tracked object from an object of a checked event; nil if it has no id.
    init?(_ view: JSONView) {
        guard let objectId = view["objectId"]?.string else { return nil }
        self.objectId = CoatyUUID(wire: objectId)
        parentObjectId = view["parentObjectId"]?.string.map(CoatyUUID.init(wire:))
        bytes = Array(view.bytes)
    }

    var size: Int { bytes.count }

    /// The object, decoded on each access.
    var decoded: CoatyObject { get throws { try PayloadCoder.object(Payload(bytes).json) } }

    /// Returns whether the properties are equal, regardless of their order.
    func isSame(as other: TrackedObject) -> Bool {
        if bytes == other.bytes { return true }
        guard let own = try? Payload(bytes), let others = try? Payload(other.bytes) else { return false }
        return AnyCodable(own.json) == AnyCodable(others.json)
    }
}
