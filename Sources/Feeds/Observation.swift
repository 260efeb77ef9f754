package import Access
package import Coaty
import CoatyMQTT
package import Network

/// The events that a client subscribes to.
package enum Observation: Sendable, Hashable {
    case advertise(ObjectKind)
    /// The objects in the object registry, and their changes; nil for all objects.
    case objects(ObjectKind?)
    case deadvertise
    case channel(WireName)
    case discover
    case query
    case update(ObjectKind)
    case call(operation: WireName)
    /// The Associate events of an IO context.
    case associate(contextName: WireName)
    /// The messages that match an MQTT topic filter.
    case raw(WireName)
    /// The values for an IO actor that is registered at the gateway.
    case ioValue(actor: CoatyUUID)
    /// The state of an IO point that is registered at the gateway.
    case ioState(point: CoatyUUID)
    /// The associations of an IO context.
    case routing(context: CoatyUUID)
    /// All events of some event types, unchecked as on the wire.
    case traffic(Set<CommunicationEventType>)

    /// The patterns that can be observed, whose names are those in frames and paths, and the names of the parameters that
    /// select their events.
    static let parameters: [AccessPattern: Set<String>] = [
        .advertise: ["coreType", "objectType", "snapshot"], .associate: ["contextName"], .call: ["operation"],
        .channel: ["channelId"], .deadvertise: [], .discover: [], .iostate: ["ioPointId"], .iovalue: ["ioActorId"],
        .query: [], .raw: ["topic"], .routing: ["contextId"], .traffic: ["events"],
        .update: ["coreType", "objectType"],
    ]

    /// The names of the patterns that can be observed.
    package static let names = parameters.keys.map(\.rawValue).sorted()

    /// Returns the parameters of the pattern with a name; nil if there is none that can be observed.
    package static func parameters(of name: String) -> Set<String>? {
        AccessPattern(rawValue: name).flatMap { parameters[$0] }
    }

    /// Parses an observation from an event name and parameters. Returns nil if no event has this name.
    ///
    /// - Throws: an error with the missing or invalid parameter.
    package init?(event name: String, _ parameters: some ClientParameters) throws {
        switch AccessPattern(rawValue: name) {
        case .advertise:
            if try parameters.boolean("snapshot") ?? false {
                self = .objects(try Self.objectKind(parameters))
            } else {
                self = .advertise(try Self.requiredObjectKind(parameters))
            }
        case .associate: self = .associate(contextName: try parameters.requiredLevel("contextName"))
        case .call: self = .call(operation: try parameters.requiredLevel("operation"))
        case .channel: self = .channel(try parameters.requiredLevel("channelId"))
        case .deadvertise: self = .deadvertise
        case .discover: self = .discover
        case .iostate: self = .ioState(point: try Self.id("ioPointId", parameters))
        case .iovalue: self = .ioValue(actor: try Self.id("ioActorId", parameters))
        case .query: self = .query
        case .raw:
            let topic = try parameters.required("topic")
            guard MQTTTopicRules.isObservable(topic) else {
                throw parameters.invalid("topic", "must be an MQTT topic filter outside of Coaty's own topics")
            }
            self = .raw(WireName(topic))
        case .routing: self = .routing(context: CoatyUUID(wire: try parameters.required("contextId")))
        case .traffic: self = .traffic(try Self.eventTypes(parameters))
        case .update: self = .update(try Self.requiredObjectKind(parameters))
        default: return nil
        }
    }

    private static func id(_ name: String, _ parameters: some ClientParameters) throws -> CoatyUUID {
        guard let id = CoatyUUID(uuidString: try parameters.required(name)) else {
            throw parameters.invalid(name, "must be a UUID")
        }
        return id
    }

    private static func eventTypes(_ parameters: some ClientParameters) throws -> Set<CommunicationEventType> {
        guard let names = try parameters.texts("events") else { return Set(CommunicationEventType.allCases) }
        let types = names.compactMap { name in CommunicationEventType.allCases.first { $0.name == name } }
        guard !types.isEmpty, types.count == names.count else {
            let all = CommunicationEventType.allCases.map(\.name).joined(separator: ", ")
            throw parameters.invalid("events", "must be one or more of \(all)")
        }
        return Set(types)
    }

    private static func requiredObjectKind(_ parameters: some ClientParameters) throws -> ObjectKind {
        guard let kind = try objectKind(parameters) else {
            throw parameters.invalid("coreType", "is missing, or objectType in its place")
        }
        return kind
    }

    private static func objectKind(_ parameters: some ClientParameters) throws -> ObjectKind? {
        switch (try parameters.coreType("coreType"), try parameters.level("objectType")) {
        case (let coreType?, nil): return .core(coreType)
        case (nil, let objectType?): return .object(objectType)
        case (nil, nil): return nil
        case (_?, _?): throw parameters.invalid("objectType", "must not be combined with coreType")
        }
    }

    /// The pattern in grants, whose name is that of the events in frames and paths.
    package var pattern: AccessPattern {
        switch self {
        case .advertise, .objects: .advertise
        case .associate: .associate
        case .call: .call
        case .channel: .channel
        case .deadvertise: .deadvertise
        case .discover: .discover
        case .ioState: .iostate
        case .ioValue: .iovalue
        case .query: .query
        case .raw: .raw
        case .routing: .routing
        case .traffic: .traffic
        case .update: .update
        }
    }

    /// The kind of objects to deliver from a feed of all objects; nil for all objects and for other feeds.
    var objectKind: ObjectKind? {
        if case .objects(let kind) = self { kind } else { nil }
    }

    /// Whether its feed has its own broker session.
    package var isTraffic: Bool {
        if case .traffic = self { true } else { false }
    }

    /// Whether subscriptions may begin with the last event of each object or IO source.
    var keepsLatest: Bool {
        switch self {
        case .channel, .ioValue: true
        default: false
        }
    }

    /// Whether the broker keeps messages for new subscriptions.
    var isRaw: Bool {
        if case .raw = self { true } else { false }
    }

    /// The observation of the feed that serves this one. Observations of objects of any kind share one feed.
    var shared: Observation {
        if case .objects = self { .objects(nil) } else { self }
    }

    /// Whether the events have JSON data that filters can test.
    var carriesJSON: Bool {
        if case .raw = self { false } else { true }
    }

    /// Whether an event replaces an earlier one with the same key.
    var hasValues: Bool {
        switch self {
        case .advertise, .objects, .channel, .update, .raw, .ioValue: true
        case .deadvertise, .discover, .query, .call, .associate, .ioState, .routing, .traffic: false
        }
    }

    /// Whether clients can resume. A subscription to a state starts with the complete current state instead.
    var isResumable: Bool {
        switch self {
        case .ioState, .routing: false
        default: true
        }
    }
}
