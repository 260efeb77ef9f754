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

    /// Checks that the object's type can stand in a topic.
    ///
    /// - Parameter isPublishedHere: what comes in may have a longer one, and control characters.
    func checkObjectTypeIsLevel(isPublishedHere: Bool) throws(PayloadError) {
        guard let objectType = json["object"]?["objectType"], let text = objectType.string else { return }
        guard CommunicationTopic.isValidLevel(text) else {
            throw .invalid(objectType, "must not hold U+0000, #, + or /")
        }
        guard !isPublishedHere || CommunicationTopic.isPublishableLevel(text) else {
            let limit = CommunicationTopic.maximumLevelLength
            throw .invalid(objectType, "must not hold control characters, nor more than \(limit) bytes")
        }
    }

    /// The topic filters that an event is published on by its object: the core type and, unless it is the core type's own,
    /// the object type.
    var objectTopicFilters: (coreType: String, objectType: String?) {
        let object = json["object"]
        let coreType = object?["coreType"]?.string ?? ""
        let objectType = object?["objectType"]?.string ?? ""
        let isOwn = CoreType(rawValue: coreType)?.objectType == objectType
        return (coreType, isOwn ? nil : ":" + objectType)
    }
}

extension JSONView {
    /// Checks that a property is one of those that a request asks for.
    func check(_ name: StaticString, isIn asked: [String]?) throws(PayloadError) {
        guard let asked else { return }
        guard let value = self[name] else { throw .missing(name, in: self) }
        guard let text = value.string, asked.contains(where: { TopicLevel($0) == TopicLevel(text) }) else {
            throw .invalid(value, "is not what the request asks for")
        }
    }
}
