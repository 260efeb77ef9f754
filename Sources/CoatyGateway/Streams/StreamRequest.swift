import Coaty

/// What a stream client wants to observe, by the event's name and its parameters.
enum StreamRequest: Sendable, Hashable {
    case advertisedCoreType(CoreType)
    case advertisedObjectType(TopicLevel)
    case deadvertise
    case channel(TopicLevel)
    /// The values of an IO actor that is registered here.
    case ioValue(actor: CoatyUUID)
    /// The state of an IO point that is registered here.
    case ioState(point: CoatyUUID)
    /// The associations of an IO context.
    case routing(context: CoatyUUID)

    /// Reads the event and the query of `/v1/ws/{event}`. Nil where there is no such event.
    ///
    /// - Throws: ``InvalidParameter`` where a parameter is missing, unusable or given more than once.
    init?(event: String, queryItems: [(name: String, value: String)]) throws(InvalidParameter) {
        func value(_ name: String) throws(InvalidParameter) -> String? {
            try InvalidParameter.single(name, queryItems.filter { $0.name == name }.map(\.value))
        }
        func level(_ name: String, _ text: String) throws(InvalidParameter) -> TopicLevel {
            guard CommunicationTopic.isPublishableLevel(text) else {
                throw InvalidParameter(name: name, reason: InvalidParameter.level)
            }
            return TopicLevel(text)
        }
        func id(_ name: String) throws(InvalidParameter) -> CoatyUUID {
            guard let text = try value(name) else { throw InvalidParameter(name: name, reason: "is missing") }
            guard let id = CoatyUUID(uuidString: text) else {
                throw InvalidParameter(name: name, reason: "must be a UUID")
            }
            return id
        }
        switch event {
        case "advertise":
            switch (try value("coreType"), try value("objectType")) {
            case (let name?, nil):
                guard let coreType = CoreType(rawValue: name) else {
                    throw InvalidParameter(name: "coreType", reason: "must be a core type")
                }
                self = .advertisedCoreType(coreType)
            case (nil, let objectType?):
                self = .advertisedObjectType(try level("objectType", objectType))
            case (nil, nil):
                throw InvalidParameter(name: "coreType", reason: "is missing, or objectType in its place")
            case (_?, _?):
                throw InvalidParameter(name: "objectType", reason: "must not stand beside coreType")
            }
        case "deadvertise":
            self = .deadvertise
        case "channel":
            guard let channelId = try value("channelId") else {
                throw InvalidParameter(name: "channelId", reason: "is missing")
            }
            self = .channel(try level("channelId", channelId))
        case "iovalue":
            self = .ioValue(actor: try id("actor"))
        case "iostate":
            self = .ioState(point: try id("point"))
        case "routing":
            guard let text = try value("context"), !text.isEmpty else {
                throw InvalidParameter(name: "context", reason: "is missing")
            }
            self = .routing(context: CoatyUUID(wire: text))
        default:
            return nil
        }
    }
}
