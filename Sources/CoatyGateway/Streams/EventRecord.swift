import Coaty
import Foundation

/// An event as a source has said it, made once for all who observe it.
final class EventRecord: Sendable {
    /// What a source can say.
    enum Content: Sendable {
        case event(ObservedEvent)
        /// Events may be missing at this place, and nobody knows how many.
        case gap
    }

    /// Nil where nothing can be resumed behind it.
    let cursor: StreamCursor?
    let content: Content

    init(_ content: Content, cursor: StreamCursor?) {
        self.cursor = cursor
        self.content = content
    }

    /// About how many bytes the record holds.
    var size: Int {
        guard case .event(let event) = content else { return Self.overhead }
        return event.footprint + Self.overhead
    }

    private static let overhead = 200
}

/// What was observed.
struct ObservedEvent: Sendable {
    enum Data: Sendable {
        case json(Payload)
        case octets([UInt8])

        /// The length of the text or the octets.
        var length: Int {
            switch self {
            case .json(let payload): payload.bytes.count
            case .octets(let octets): octets.count
            }
        }

        var footprint: Int {
            switch self {
            case .json(let payload): payload.footprint
            case .octets(let octets): octets.count
            }
        }
    }

    /// The members before `data`: `"event":…` and who and what the event is about.
    let head: [UInt8]
    let data: Data
    /// What throttling and `latest` take for the same thing; nil where nothing replaces the event.
    let key: WireName?
    /// Where the objects are that a filter is asked of, and that a projection is applied to.
    let subject: Subject
    /// Nil for what is no change of an object that is alive.
    var change: ObservedChange?

    /// Which part of the data is the thing itself.
    enum Subject: Sendable {
        /// `object`, or each of `objects`.
        case objects
        /// The data as a whole.
        case data
        /// The data are octets.
        case none
    }

    /// An event of the network.
    init<Event: CommunicationEvent>(_ event: Event, _ subject: Subject, members: [(String, String?)] = []) {
        head = Self.head(Event.eventType.name, [("sourceId", event.sourceId?.string ?? "")] + members)
        data = .json(event.payload)
        self.subject = subject
        key = subject == .objects ? event.payload.json["object"]?["objectId"]?.string.map { WireName($0) } : nil
    }

    /// A message on a topic outside of Coaty's own.
    init(_ event: RawEvent) {
        head = Self.head("raw", [("topic", event.topic)])
        data = .octets(event.payload)
        subject = .none
        key = WireName(event.topic)
    }

    /// A value that came for an IO actor.
    init(_ event: IoValueEvent, actor: CoatyUUID) {
        head = Self.head("iovalue", [("ioActorId", actor.string), ("ioSourceId", event.ioSourceId?.string)])
        key = WireName(actor.string)
        // What is not raw was checked to be JSON when it came.
        if !event.isRaw, let payload = try? Payload(Array(#"{"value":"#.utf8) + event.bytes + "}".utf8) {
            data = .json(payload)
            subject = .data
        } else {
            data = .octets(event.bytes)
            subject = .none
        }
    }

    /// An event of whatever kind, as it is on the wire.
    init(_ event: TrafficEvent) {
        let address = event.address
        let (name, isValue) = (address.name?.text, address.eventType == .ioValue)
        head = Self.head(
            address.eventType.name,
            [
                (isValue ? "ioSourceId" : "sourceId", address.sourceId.string),
                ("correlationId", address.correlationId?.string),
                ("channelId", address.eventType == .channel ? name : nil),
                ("operation", address.eventType == .call ? name : nil),
                ("contextName", address.eventType == .associate ? name : nil),
                ("topic", event.label),
            ]
        )
        key = nil
        guard let payload = event.payload,
            let told = isValue ? try? Payload(Array(#"{"value":"#.utf8) + event.bytes + "}".utf8) : payload
        else {
            data = .octets(event.bytes)
            subject = .none
            return
        }
        data = .json(told)
        subject = payload.object == nil && payload.objects == nil || isValue ? .data : .objects
    }

    /// What the gateway itself has to say of an id.
    init(_ name: String, _ idName: String, _ id: CoatyUUID, data payload: Payload) {
        head = Self.head(name, [(idName, id.string)])
        data = .json(payload)
        subject = .data
        key = nil
    }

    /// An object that is alive, or was. Nil is not to be expected: the object's text was checked when it came.
    init?(_ change: ObjectChange) {
        guard let payload = try? Payload(object: change.object.bytes), let view = payload.json["object"] else {
            return nil
        }
        let object = change.object
        head =
            Self.head("advertise", [("sourceId", object.owner.string)])
            + #","since":\#(object.since),"changed":\#(object.changed)"#.utf8
        data = .json(payload)
        subject = .objects
        key = WireName(change.object.objectId.string)
        self.change = ObservedChange(
            kind: change.kind,
            object: (change.object, view),
            previous: change.previous.flatMap { object in object.json.map { (object, $0) } }
        )
    }

    private static func head(_ name: String, _ members: [(String, String?)]) -> [UInt8] {
        var text = Array(#""event":"\#(name)""#.utf8)
        for case (let name, let value?) in members {
            text += #",""#.utf8
            text += name.utf8
            text += #"":"#.utf8
            JSONText.append(value, to: &text)
        }
        return text
    }

    /// About how many bytes the event holds.
    var footprint: Int {
        let previous = change?.previous.map { 2 * $0.object.size } ?? 0
        return head.count + data.footprint + (key?.text.utf8.count ?? 0) + previous + (change?.object.object.size ?? 0)
    }

    /// The objects that a filter is asked of.
    var subjects: [JSONView] {
        guard case .json(let payload) = data else { return [] }
        switch subject {
        case .objects: return payload.object.map { [$0] } ?? payload.objects ?? []
        case .data: return [payload.json]
        case .none: return []
        }
    }
}

extension Payload {
    /// The object that an event is about.
    var object: JSONView? { json["object"].flatMap { $0.kind == .object ? $0 : nil } }

    /// The objects that an event is about.
    var objects: [JSONView]? { json["objects"].flatMap { $0.kind == .array ? Array($0.elements) : nil } }
}

/// How an object that is alive has changed, ready to be asked of filters.
struct ObservedChange: Sendable {
    let kind: ObjectChange.Kind
    let object: (object: AliveObject, view: JSONView)
    let previous: (object: AliveObject, view: JSONView)?
}
