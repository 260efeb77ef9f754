/// The payload of events that carry an object, several objects, or neither.
struct ObjectBody: Encodable {
    var object: CoatyObject?
    var objects: [CoatyObject]?
    var relatedObjects: [CoatyObject]?
    var privateData: [String: AnyCodable]?
}

extension Payload {
    func object(_ name: StaticString = "object") throws -> CoatyObject? {
        try json[name].map(PayloadCoder.object)
    }

    func objects(_ name: StaticString) throws -> [CoatyObject]? {
        try json[name]?.elements.map(PayloadCoder.object)
    }

    /// The object of an event that always has one.
    func requiredObject() throws -> CoatyObject {
        guard let object = try object() else { throw PayloadError.missing("object", in: json) }
        return object
    }

    /// The objects of an event that always has a list of them.
    func requiredObjects() throws -> [CoatyObject] {
        guard let objects = try objects("objects") else { throw PayloadError.missing("objects", in: json) }
        return objects
    }

    /// Checks that the object's type is a valid name.
    ///
    /// - Parameter isPublishedHere: whether the limits of what is published here apply.
    func checkObjectTypeIsName(isPublishedHere: Bool) throws(PayloadError) {
        guard let objectType = json["object"]?["objectType"], let text = objectType.string else { return }
        guard WireName.isValid(text) else {
            throw .invalid(objectType, "must not hold U+0000, #, + or /")
        }
        guard !isPublishedHere || WireName.isPublishable(text) else {
            let limit = WireName.maximumLength
            throw .invalid(objectType, "must not hold control characters, nor more than \(limit) bytes")
        }
    }

    /// The names that an event with an object is published under: the core type and, unless it is the core type's own, the
    /// object type.
    var objectNames: [EventName] {
        let object = json["object"]
        let coreType = object?["coreType"]?.string ?? ""
        let objectType = object?["objectType"]?.string ?? ""
        let isOwn = CoreType(rawValue: coreType)?.objectType == objectType
        return [.coreType(WireName(coreType))] + (isOwn ? [] : [.objectType(WireName(objectType))])
    }
}

extension JSONView {
    /// Checks that a property is one of those that a request asks for.
    func check(_ name: StaticString, isIn asked: [String]?) throws(PayloadError) {
        guard let asked else { return }
        guard let value = self[name] else { throw .missing(name, in: self) }
        guard let text = value.string, asked.contains(where: { WireName($0) == WireName(text) }) else {
            throw .invalid(value, "is not what the request asks for")
        }
    }
}
