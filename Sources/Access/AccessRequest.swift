package import Coaty

/// The kind of an operation: the first key of a grant.
package enum Verb: String, Sendable, CaseIterable {
    case publish, request, observe, answer, read, route, register, administer
}

/// The event or resource of an operation: an element of a grant's list. A grant to route lists context names instead.
package enum AccessPattern: String, Sendable, CaseIterable {
    case advertise, deadvertise, channel, raw, iovalue
    case discover, query, update, call
    case associate, iostate, routing, traffic
    case objects, agents, nodes, contexts, status, info
    case identity
    case clients, gateway
}

/// The names that an operation affects, compared with the names of a grant.
package enum AccessTarget: Sendable, Hashable {
    /// The pattern has no names.
    case none
    /// An object of this core type and object type.
    case object(CoreType, WireName)
    /// All objects of a core type.
    case coreType(CoreType)
    /// All objects of an object type.
    case objectType(WireName)
    /// Objects of any type, or of a type that the gateway does not know.
    case anyObject
    case channel(WireName)
    case operation(WireName)
    /// A Return event whose call the gateway does not know.
    case anyOperation
    /// An MQTT topic.
    case topic(String)
    /// An MQTT topic filter.
    case topicFilter(String)
    /// The name of an IO context.
    case context(WireName)
    /// An IO context that the gateway does not know.
    case anyContext
    /// Another client, by its name in the audit log. Grants have no names of clients.
    case client(String)
}

/// One permission that an operation needs: it is allowed if a single grant covers all of it.
package struct AccessRequest: Sendable {
    package let verb: Verb
    package let pattern: AccessPattern
    package var target: AccessTarget
    /// The object that conditions test as `object`; nil if there is none. Then conditions on it deny the request.
    package var object: JSONView?
    /// The object as JSON text, which is parsed only if there is a condition on it.
    var objectText: [UInt8]?
    /// The payload of the event that conditions test as `request`; nil if there is none. Then conditions on it deny the
    /// request.
    package var request: JSONView?
    /// The object of ``objectText``, parsed on each call; nil if there is none.
    var parsedObject: JSONView? { objectText.flatMap { try? Payload($0).json } }
    /// Whether conditions on its object or payload can be evaluated now.
    package var isJudgeable: Bool { object != nil || objectText != nil || request != nil }
    /// Whether it affects something that another principal owns.
    package var isOfOthers: Bool
    /// Whether it is about something in the network of which the client only knows the id. The problem must not
    /// describe it.
    package var isAboutExisting: Bool
    /// Whether the broker keeps a raw message for later subscribers.
    package var isRetained: Bool

    package init(
        verb: Verb,
        pattern: AccessPattern,
        target: AccessTarget = .none,
        object: JSONView? = nil,
        objectText: [UInt8]? = nil,
        request: JSONView? = nil,
        isOfOthers: Bool = false,
        isAboutExisting: Bool = false,
        isRetained: Bool = false
    ) {
        self.verb = verb
        self.pattern = pattern
        self.target = target
        self.object = object
        self.objectText = objectText
        self.request = request
        self.isOfOthers = isOfOthers
        self.isAboutExisting = isAboutExisting
        self.isRetained = isRetained
    }
}

extension AccessRequest {
    /// Returns whether the same grants cover another request, except for their conditions.
    func hasSameNames(as other: AccessRequest) -> Bool {
        verb == other.verb && pattern == other.pattern && isOfOthers == other.isOfOthers
            && isRetained == other.isRetained && target == other.target
    }
}

extension AccessTarget {
    /// The core type of the object; nil if there is none.
    package var coreType: CoreType? {
        switch self {
        case .object(let coreType, _), .coreType(let coreType): coreType
        default: nil
        }
    }

    /// The name as written in a grant; nil if there is none.
    package var name: String? {
        switch self {
        case .none: nil
        case .anyObject, .anyOperation, .anyContext: "*"
        case .object(_, let name), .objectType(let name), .channel(let name), .operation(let name), .context(let name):
            name.text
        case .coreType(let coreType): coreType.rawValue
        case .topic(let topic), .topicFilter(let topic): topic
        case .client(let name): name
        }
    }
}
