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
}
