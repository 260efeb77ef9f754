/// The payload of events that contain an object, several objects, or neither.
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

    /// Returns the object of an event that always has one.
    func requiredObject() throws -> CoatyObject {
        guard let object = try object() else { throw PayloadError.missing("object", in: json) }
        return object
    }

    /// Returns the objects of an event that always has a list of them.
    func requiredObjects() throws -> [CoatyObject] {
        guard let objects = try objects("objects") else { throw PayloadError.missing("objects", in: json) }
        return objects
    }
}

extension JSONView {
    /// Checks that a property is one of the requested values.
    func check(_ name: StaticString, isIn asked: [String]?) throws(PayloadError) {
        guard let asked else { return }
        guard let value = self[name] else { throw .missing(name, in: self) }
        guard let text = value.string, asked.contains(where: { WireName($0) == WireName(text) }) else {
            throw .invalid(value, "is not what the request asks for")
        }
    }
}
