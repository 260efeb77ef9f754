/// The checked bytes of an object, without the event that brought it.
struct TrackedObject: Sendable {
    let objectId: CoatyUUID
    let parentObjectId: CoatyUUID?
    private let bytes: [UInt8]

    /// Takes an object of a checked event; nil where it has no id.
    init?(_ view: JSONView) {
        guard let objectId = view["objectId"]?.string else { return nil }
        self.objectId = CoatyUUID(wire: objectId)
        parentObjectId = view["parentObjectId"]?.string.map(CoatyUUID.init(wire:))
        bytes = Array(view.bytes)
    }

    var size: Int { bytes.count }

    /// The object, decoded anew each time.
    var decoded: CoatyObject { get throws { try PayloadCoder.object(Payload(bytes).json) } }

    /// Whether the properties are the same, in whatever order they stand.
    func isSame(as other: TrackedObject) -> Bool {
        if bytes == other.bytes { return true }
        guard let own = try? Payload(bytes), let others = try? Payload(other.bytes) else { return false }
        return AnyCodable(own.json) == AnyCodable(others.json)
    }
}
