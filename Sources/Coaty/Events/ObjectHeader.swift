/// The identifying properties of an object in a payload, for code that selects or forwards objects without decoding
/// them.
public struct ObjectHeader: Sendable {
    /// The whole object.
    public let json: JSONView
    /// The core type.
    public let coreType: CoreType
    /// The object type.
    public let objectType: WireName
    /// The object id.
    public let objectId: CoatyUUID
    /// The object id of the parent; nil if the object has none.
    public let parentObjectId: CoatyUUID?

    /// Reads the properties from the payload of an event.
    ///
    /// - Parameters:
    ///   - payload: the payload, already checked by its schema.
    ///   - isPublishedHere: whether the limits for local publications apply.
    /// - Throws: ``PayloadError`` if the object's type is not a valid name.
    init(of payload: Payload, isPublishedHere: Bool) throws(PayloadError) {
        guard let json = payload.json["object"] else { throw .missing("object", in: payload.json) }
        guard let header = ObjectHeader(json) else { throw .invalid(json, "must be a Coaty object") }
        guard WireName.isValid(header.objectType.text) else {
            throw .invalid(json["objectType"] ?? json, "must not contain U+0000, #, + or /")
        }
        guard !isPublishedHere || WireName.isPublishable(header.objectType.text) else {
            let reason = "must not contain control characters, nor more than \(WireName.maximumLength) bytes"
            throw .invalid(json["objectType"] ?? json, reason)
        }
        self = header
    }

    /// Reads the properties of a JSON value; nil if it is not a Coaty object.
    public init?(_ json: JSONView) {
        guard let coreType = json["coreType"].flatMap(CoreType.init), let objectType = json["objectType"]?.string,
            let objectId = json["objectId"]?.string
        else { return nil }
        self.json = json
        self.coreType = coreType
        self.objectType = WireName(objectType)
        self.objectId = CoatyUUID(wire: objectId)
        parentObjectId = json["parentObjectId"]?.string.map(CoatyUUID.init(wire:))
    }

    /// The names that the event is published under: the core type and, unless it is the core type's default object
    /// type, the object type.
    public var names: [EventName] {
        let ofCoreType = EventName.coreType(WireName(coreType.rawValue))
        return objectType == WireName(coreType.objectType) ? [ofCoreType] : [ofCoreType, .objectType(objectType)]
    }
}
