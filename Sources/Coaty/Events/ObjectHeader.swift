/// The identifying properties of an object in a payload. Read once, because topics, permissions and tables need them.
package struct ObjectHeader: Sendable {
    /// The whole object.
    package let json: JSONView
    package let coreType: CoreType
    package let objectType: WireName
    package let objectId: CoatyUUID
    package let parentObjectId: CoatyUUID?

    /// - Parameters:
    ///   - payload: the payload of the event, already checked by its schema.
    ///   - isPublishedHere: whether the limits for local publications apply.
    /// - Throws: ``PayloadError`` if the object's type is not a valid name.
    init(of payload: Payload, isPublishedHere: Bool) throws(PayloadError) {
        guard let json = payload.json["object"] else { throw .missing("object", in: payload.json) }
        guard let header = ObjectHeader(json) else { throw .invalid(json, "must be a Coaty object") }
        guard WireName.isValid(header.objectType.text) else {
            throw .invalid(json["objectType"] ?? json, "must not hold U+0000, #, + or /")
        }
        guard !isPublishedHere || WireName.isPublishable(header.objectType.text) else {
            let reason = "must not hold control characters, nor more than \(WireName.maximumLength) bytes"
            throw .invalid(json["objectType"] ?? json, reason)
        }
        self = header
    }

    /// - Parameter json: a Coaty object.
    /// - Returns: nil if it is not one.
    package init?(_ json: JSONView) {
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
    package var names: [EventName] {
        let ofCoreType = EventName.coreType(WireName(coreType.rawValue))
        return objectType == WireName(coreType.objectType) ? [ofCoreType] : [ofCoreType, .objectType(objectType)]
    }
}
