package import Access
package import Base
package import Coaty
import CoatyMQTT
import Foundation
package import Network

/// A one-way event pattern as clients publish it, alone or as one JSON object: `{"event":…,"channelId"?,"topic"?,
/// "retain"?,"lifetime"?,"data":…}`. ``ObjectLifetime`` reads `lifetime`.
///
/// `data` is the payload of an Advertise, Deadvertise or Channel event, whose bytes are published unchanged. The `data`
/// of a raw event is `{"encoding":"base64"|"utf8","value":…}`. A new pattern conforms, and is added to
/// ``ClientPublications/types``.
package protocol ClientPublication: Sendable {
    /// The pattern in grants, and its name.
    static var pattern: AccessPattern { get }
    /// The members of the JSON object besides `event` and `data`.
    static var members: Set<String> { get }

    /// Reads the JSON object, whose members are known.
    ///
    /// - Throws: ``PayloadError`` with a pointer into the view's document.
    static func publication(in view: JSONView, _ limits: Limits) throws -> any ClientPublication

    /// The payload that grants are compared with; nil if there is none.
    var content: Payload? { get }
    /// The size of the payload, in bytes.
    var size: Int { get }
    /// The number of names that the event is published under.
    var publications: Int { get }

    /// The claims of a client that publishes the event.
    func claims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest]

    /// - Throws: `Problem` if the principal has too many objects in the network, or no room for one with a lifetime;
    ///   `CommunicationError`.
    func publish(by publisher: Publisher, in network: NetworkParts) throws -> PublishOutcome

    /// See ``Gate/publish(_:_:from:by:)``. A requirement, because the compiler specializes it for each pattern, which it
    /// can't do for a generic function that another module calls.
    func publish(
        through gate: Gate,
        _ lifetime: ObjectLifetime?,
        from identity: ClientIdentity?,
        by principal: Principal
    ) throws -> PublishOutcome
}

/// What publishes an event of a client.
package struct Publisher {
    /// The agent of the client's identity, or of the gateway.
    let manager: CommunicationManager
    /// The lifetime of an advertised object; nil until it is withdrawn.
    let lifetime: ObjectLifetime?
    /// The place in the outbox.
    let place: Place
    let permit: Permit
}

extension ClientPublication {
    package static var members: Set<String> { [] }
    package var publications: Int { 1 }

    package func publish(
        through gate: Gate,
        _ lifetime: ObjectLifetime?,
        from identity: ClientIdentity?,
        by principal: Principal
    ) throws -> PublishOutcome {
        try gate.perform(Publish(publication: self, lifetime: lifetime, identity: identity), by: principal)
    }
}

extension ClientPublication where Self: CommunicationEvent {
    package var content: Payload? { payload }
    package var size: Int { payload.bytes.count }
}

/// The one-way patterns.
package enum ClientPublications {
    static let types: [any ClientPublication.Type] = [
        AdvertiseEvent.self, DeadvertiseEvent.self, ChannelEvent.self, RawEvent.self,
    ]

    /// Parses a publication.
    ///
    /// - Parameters:
    ///   - limits: the maximum number of ids of a Deadvertise event.
    ///   - others: further allowed members of the JSON object.
    /// - Throws: ``PayloadError`` with a pointer into the view's document.
    package static func publication(
        in view: JSONView,
        _ limits: Limits,
        besides others: Set<String> = []
    ) throws -> any ClientPublication {
        guard view.kind == .object else { throw view.invalid("must be an object") }
        let event = try view.required("event")
        guard let name = event.string, let type = types.first(where: { $0.pattern.rawValue == name }) else {
            let names = types.map { $0.pattern.rawValue }
            throw event.invalid("must be \(names.dropLast().joined(separator: ", ")) or \(names.last ?? "")")
        }
        try view.refuseMembers(besides: others.union(["event", "data"]).union(type.members))
        return try type.publication(in: view, limits)
    }
}

extension AdvertiseEvent: ClientPublication {
    package static var pattern: AccessPattern { .advertise }
    package static var members: Set<String> { ["lifetime"] }

    package static func publication(in view: JSONView, _ limits: Limits) throws -> any ClientPublication {
        try view.data { try publication($0) }
    }

    /// Reads the payload.
    ///
    /// - Parameter hasLifetime: whether the client may state the lifetime of the object beside it.
    package static func publication(_ payload: Payload, hasLifetime: Bool = false) throws(PayloadError)
        -> AdvertiseEvent
    {
        let event = try AdvertiseEvent(
            payload: EventMembers.checked(payload, as: .advertise, hasLifetime: hasLifetime)
        )
        try payload.json["object"]?.checkNewId()
        return event
    }

    package var publications: Int { header.names.count }

    package func claims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        network.versions(of: header, .publish, .advertise, by: subject)
    }

    package func publish(by publisher: Publisher, in network: NetworkParts) throws -> PublishOutcome {
        let permit = publisher.permit
        let account = permit.account
        if permit.isRestricted { try network.owners.insert(header.objectId, permit.principal.subject, account) }
        return try network.keptObjects.advertise(
            self,
            publisher.lifetime,
            from: publisher.manager,
            by: KeptObjects.Owner(principal: permit.principal, account: account),
            holding: publisher.place
        )
    }
}

extension DeadvertiseEvent: ClientPublication {
    package static var pattern: AccessPattern { .deadvertise }

    package static func publication(in view: JSONView, _ limits: Limits) throws -> any ClientPublication {
        try view.data { try publication($0, limits) }
    }

    /// Reads the payload.
    package static func publication(_ payload: Payload, _ limits: Limits) throws(PayloadError) -> DeadvertiseEvent {
        let event = try DeadvertiseEvent(payload: EventMembers.checked(payload, as: .deadvertise))
        guard event.data.objectIds.count <= limits.deadvertisedIds else {
            throw PayloadError.invalid(pointer: "/objectIds", reason: "has more than \(limits.deadvertisedIds) ids")
        }
        return event
    }

    package func claims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        var seen: Set<CoatyUUID> = []
        let ids = data.objectIds.filter { seen.insert($0).inserted }
        return ids.flatMap { network.deadvertise($0, by: subject) }
    }

    package func publish(by publisher: Publisher, in network: NetworkParts) throws -> PublishOutcome {
        let delivery = try network.keptObjects.deadvertise(self, from: publisher.manager, holding: publisher.place)
        network.owners.remove(data.objectIds)
        return PublishOutcome(delivery: delivery)
    }
}

extension ChannelEvent: ClientPublication {
    package static var pattern: AccessPattern { .channel }
    package static var members: Set<String> { ["channelId"] }

    package static func publication(in view: JSONView, _ limits: Limits) throws -> any ClientPublication {
        let channelId = try view.required("channelId")
        guard let name = channelId.string, WireName.isPublishable(name) else {
            throw channelId.invalid(InvalidParameter.level)
        }
        return try view.data { try publication($0, on: name) }
    }

    /// Reads the payload.
    package static func publication(_ payload: Payload, on channelId: String) throws -> ChannelEvent {
        let event = try ChannelEvent(channelId: channelId, payload: EventMembers.checked(payload, as: .channel))
        try payload.json["object"]?.checkNewId()
        if let objects = payload.json["objects"] {
            for object in objects.elements { try object.checkNewId() }
        }
        return event
    }

    package func claims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        AccessRequest.channel(.publish, WireName(channelId), payload)
    }

    package func publish(by publisher: Publisher, in network: NetworkParts) throws -> PublishOutcome {
        PublishOutcome(delivery: try publisher.manager.publishChannel(self, holding: publisher.place))
    }
}

extension RawEvent: ClientPublication {
    package static var pattern: AccessPattern { .raw }
    package static var members: Set<String> { ["topic", "retain"] }
    /// The reason for an invalid topic.
    package static let topicRule =
        "must be an MQTT topic of 1 to 65535 bytes and at most 200 levels, without + # and control characters, and not"
        + " begin with coaty/, coaty. or $"

    package static func publication(in view: JSONView, _ limits: Limits) throws -> any ClientPublication {
        let topic = try view.required("topic")
        if let retain = view["retain"], retain.bool == nil { throw retain.invalid("must be true or false") }
        let data = try view.required("data")
        try data.refuseMembers(besides: ["encoding", "value"])
        let (encoding, value) = (try data.required("encoding"), try data.required("value"))
        guard let text = value.string else { throw value.invalid("must be a string") }
        let payload: [UInt8]
        switch encoding.string {
        case "utf8": payload = Array(text.utf8)
        case "base64":
            guard let bytes = Data(base64Encoded: text) else { throw value.invalid("must be base64") }
            payload = Array(bytes)
        default: throw encoding.invalid("must be base64 or utf8")
        }
        guard MQTTTopicRules.isPublishable(topic.string ?? ""),
            let event = try? RawEvent.with(
                topic: topic.string ?? "",
                payload: payload,
                shouldRetain: view["retain"]?.bool ?? false
            )
        else { throw topic.invalid(topicRule) }
        return event
    }

    package var content: Payload? { nil }
    package var size: Int { payload.count }

    package func claims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .publish, pattern: .raw, target: .topic(topic), isRetained: shouldRetain)]
    }

    package func publish(by publisher: Publisher, in network: NetworkParts) throws -> PublishOutcome {
        PublishOutcome(delivery: try publisher.manager.publishRaw(self, holding: publisher.place))
    }
}

extension JSONView {
    /// Checks the id of an object that a client publishes. Existing agents use other ids, which clients may refer to.
    fileprivate func checkNewId() throws(PayloadError) {
        guard let id = self["objectId"], id.string.map(CoatyUUID.isUUID) != true else { return }
        throw id.invalid("must be a UUID (8-4-4-4-12 hexadecimal digits) that no other object has")
    }
}
