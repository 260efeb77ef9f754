import Base
import Coaty
import CoatyMQTT
import Foundation

/// A publication of a client, as one JSON object: `{"event":…,"channelId"?,"topic"?,"retain"?,"lifetime"?,
/// "data":…}`. ``ObjectLifetime`` reads `lifetime`.
///
/// `data` is the payload of an Advertise, Deadvertise or Channel event, whose bytes are published unchanged. The `data`
/// of a raw event is `{"encoding":"base64"|"utf8","value":…}`.
enum PublicationRequest: Sendable {
    case advertise(AdvertiseEvent)
    case deadvertise(DeadvertiseEvent)
    case channel(ChannelEvent)
    case raw(RawEvent)

    /// The reason for an invalid topic of a raw event.
    static let topic =
        "must be an MQTT topic of 1 to 65535 bytes and at most 200 levels, without + # and control characters, and not"
        + " begin with coaty/, coaty. or $"

    /// Parses a publication.
    ///
    /// - Parameters:
    ///   - limits: the maximum number of ids of a Deadvertise event.
    ///   - others: further allowed members of the JSON object.
    /// - Throws: ``PayloadError`` with a pointer into the view's document.
    init(_ view: JSONView, _ limits: Limits, besides others: Set<String> = []) throws {
        guard view.kind == .object else { throw view.invalid("must be an object") }
        let event = try view.required("event")
        let members = others.union(["event", "data"])
        switch event.string {
        case "advertise":
            try view.refuseMembers(besides: members.union(["lifetime"]))
            self = .advertise(try view.data { try Self.advertisement($0) })
        case "deadvertise":
            try view.refuseMembers(besides: members)
            self = .deadvertise(try view.data { try Self.deadvertisement($0, limits) })
        case "channel":
            try view.refuseMembers(besides: members.union(["channelId"]))
            let channelId = try view.required("channelId")
            guard let name = channelId.string, WireName.isPublishable(name) else {
                throw channelId.invalid(InvalidParameter.level)
            }
            self = .channel(try view.data { try Self.channelEvent(name, $0) })
        case "raw":
            try view.refuseMembers(besides: members.union(["topic", "retain"]))
            self = .raw(try Self.raw(view))
        default:
            throw event.invalid("must be advertise, deadvertise, channel or raw")
        }
    }

    /// Reads the payload of an Advertise event.
    ///
    /// - Parameter hasLifetime: whether the client may state the lifetime of the object beside it.
    static func advertisement(_ payload: Payload, hasLifetime: Bool = false) throws(PayloadError) -> AdvertiseEvent {
        let event = try AdvertiseEvent(
            payload: EventMembers.checked(payload, as: .advertise, hasLifetime: hasLifetime)
        )
        try payload.json["object"]?.checkNewId()
        return event
    }

    /// Reads the payload of a Channel event.
    static func channelEvent(_ channelId: String, _ payload: Payload) throws -> ChannelEvent {
        let event = try ChannelEvent(channelId: channelId, payload: EventMembers.checked(payload, as: .channel))
        try payload.json["object"]?.checkNewId()
        if let objects = payload.json["objects"] {
            for object in objects.elements { try object.checkNewId() }
        }
        return event
    }

    /// Reads the payload of a Deadvertise event.
    static func deadvertisement(_ payload: Payload, _ limits: Limits) throws -> DeadvertiseEvent {
        let event = try DeadvertiseEvent(payload: EventMembers.checked(payload, as: .deadvertise))
        guard event.data.objectIds.count <= limits.deadvertisedIds else {
            throw PayloadError.invalid(pointer: "/objectIds", reason: "has more than \(limits.deadvertisedIds) ids")
        }
        return event
    }

    private static func raw(_ view: JSONView) throws(PayloadError) -> RawEvent {
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
        else { throw topic.invalid(Self.topic) }
        return event
    }
}

extension JSONView {
    /// Checks the id of an object that a client publishes. Existing agents use other ids, which clients may refer to.
    fileprivate func checkNewId() throws(PayloadError) {
        guard let id = self["objectId"], id.string.map(CoatyUUID.isUUID) != true else { return }
        throw id.invalid("must be a UUID (8-4-4-4-12 hexadecimal digits) that no other object has")
    }
}
