import Base
import Coaty
import Foundation
import Network
import Synchronization

/// An event of a feed, created once for all subscriptions of the feed.
///
/// The broker's thread only creates the record. Its content is created when a worker first reads it.
final class EventRecord: Sendable {
    /// The content of a record.
    enum Content: Sendable {
        case event(ObservedEvent)
        /// An unknown number of events, possibly zero, is missing here.
        case gap
        /// A number of events could not be read, at most within ``Feed/invalidInterval`` before this place.
        case invalid(Int)
        /// The event could not be read. Not expected: its JSON was checked when it was received.
        case nothing
    }

    private enum State {
        case pending(PendingEvent)
        case made(Content)
    }

    /// The position to resume after; nil if clients can't resume after this record.
    let cursor: FeedCursor?
    /// The approximate size of the record in memory, in bytes.
    let size: Int
    let isGap: Bool
    /// The subscriptions that receive a retained message; nil for all.
    let receivers: RetainedTopics.Receivers?
    private let state: Mutex<State>

    init(_ content: Content, cursor: FeedCursor?) {
        self.cursor = cursor
        receivers = nil
        switch content {
        case .event(let event):
            size = event.footprint + Self.overhead(cursor)
            isGap = false
        case .gap, .invalid, .nothing:
            size = Self.overhead(cursor)
            isGap = true
        }
        state = Mutex(.made(content))
    }

    init(_ event: PendingEvent, cursor: FeedCursor?, receivers: RetainedTopics.Receivers? = nil) {
        self.cursor = cursor
        self.receivers = receivers
        size = event.size + Self.overhead(cursor)
        isGap = false
        state = Mutex(.pending(event))
    }

    /// The content, which is created by the first call. If two threads call it first, both create it, and one of the
    /// results is kept.
    var content: Content {
        let pending: PendingEvent
        switch state.withLock(\.self) {
        case .made(let content): return content
        case .pending(let event): pending = event
        }
        let made = pending.make().map(Content.event) ?? .nothing
        return state.withLock { state in
            if case .made(let content) = state { return content }
            state = .made(made)
            return made
        }
    }

    private static func overhead(_ cursor: FeedCursor?) -> Int {
        200 + (cursor?.place == nil ? 0 : RecordPlace.footprint)
    }
}

/// A received event that a worker has not yet read.
struct PendingEvent: Sendable {
    /// The approximate size of the event in memory, in bytes.
    let size: Int
    /// The hash of the event at all gateways of a cluster; nil if it is not needed.
    var hash: UInt64?
    /// The topic of a message that the broker may keep, and whether the broker had kept it; nil for other events.
    var retention: (topic: WireName, isRetained: Bool)?
    /// Returns the event; nil if it could not be read.
    let make: @Sendable () -> ObservedEvent?
}

extension PendingEvent {
    /// Returns the approximate size of an event in memory, in bytes.
    static func size(of event: some CommunicationEvent) -> Int {
        event.payload.footprint + size(ofNames: event.sourceId?.string)
    }

    /// Returns the approximate size of an event's names, which are in its memory and repeated in its text. They come
    /// from topics, and may be up to 64 KiB.
    static func size(ofNames names: String?...) -> Int {
        2 * names.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }

    /// Creates a pending Advertise event from a change in the object registry, which is parsed only by a worker.
    init(_ change: ObjectChange) {
        // The text, its copy in the payload, and an index of about the same size.
        let previous = change.previous.map { 2 * $0.size } ?? 0
        self.init(size: 3 * change.object.size + previous) { ObservedEvent(change) }
    }
}

/// An observed event in the form that is delivered to clients.
struct ObservedEvent: Sendable {
    enum Data: Sendable {
        case json(Payload)
        case octets([UInt8])

        /// The length of the text or the octets, in bytes.
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

    /// The JSON members before the value of `data`: `"event":…`, the sender, correlation id, topic and so on, and the
    /// name `data`.
    let head: [UInt8]
    let data: Data
    /// Counts `head` and the text or octets of `data` for the clients for which the event is queued.
    let shared: SharedBytes
    /// Identifies the value that the event updates, for throttling and `latest`; nil if no later event replaces this
    /// one.
    let key: KeyedDigest?
    /// The IO source of a value; nil for other events.
    var source: CoatyUUID?
    /// Identifies the object or IO source for which the feed keeps the last event; nil if it keeps none.
    var latestKey: KeyedDigest? { source.map { Self.key($0.string) } ?? key }
    /// The part of the data that filters test and projections apply to.
    let subject: Subject
    /// The objects or names of the event, for the access policy.
    let access: EventAccess
    /// The request that a client may answer once the event has been delivered to it; nil for other events.
    var request: DeliveredRequest?
    /// Nil unless the event is a change in the object registry.
    var change: ObservedChange?

    /// The part of the data that filters and projections use.
    enum Subject: Sendable {
        /// `object`, or each of `objects`.
        case objects
        /// The data as a whole.
        case data
        /// No part: the data is octets.
        case none
    }

    /// Creates an event from a Coaty event.
    init<Event: CommunicationEvent>(
        _ event: Event,
        _ subject: Subject,
        _ access: EventAccess,
        members: [(String, String?)] = []
    ) {
        self.access = access
        head = Self.head(Event.eventType.name, [("sourceId", event.sourceId?.string ?? "")] + members)
        data = .json(event.payload)
        shared = Self.shared(head, data)
        self.subject = subject
        key = subject == .objects ? event.payload.json["object"]?["objectId"]?.string.map { Self.key($0) } : nil
    }

    /// Creates an event from a message on a topic that Coaty does not use.
    init(_ event: RawEvent) {
        head = Self.head("raw", [("topic", event.topic)], isRetained: event.isRetained)
        data = .octets(event.payload)
        shared = Self.shared(head, data)
        subject = .none
        access = .named(.raw, .topic(event.topic))
        key = Self.key(event.topic)
    }

    /// Creates an event from a value received for an IO actor.
    init(_ event: IoValueEvent, actor: CoatyUUID) {
        head = Self.head("iovalue", [("ioActorId", actor.string), ("ioSourceId", event.ioSourceId?.string)])
        // Access to an actor is decided when a client subscribes.
        access = .named(.iovalue, .anyContext)
        key = Self.key(actor.string)
        source = event.ioSourceId
        // A value that is not raw was checked to be JSON when it was received.
        if !event.isRaw, let payload = try? Payload(Array(#"{"value":"#.utf8) + event.bytes + "}".utf8) {
            data = .json(payload)
            subject = .data
        } else {
            data = .octets(event.bytes)
            subject = .none
        }
        shared = Self.shared(head, data)
    }

    /// Creates an event from a Coaty event of any type, unchecked as on the wire.
    ///
    /// - Parameter access: the result of ``EventAccess/init(_:_:)``.
    init(_ event: TrafficEvent, _ access: EventAccess) {
        self.access = access
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
            let json = isValue ? try? Payload(Array(#"{"value":"#.utf8) + event.bytes + "}".utf8) : payload
        else {
            data = .octets(event.bytes)
            shared = Self.shared(head, data)
            subject = .none
            return
        }
        data = .json(json)
        shared = Self.shared(head, data)
        subject = payload.object == nil && payload.objects == nil || isValue ? .data : .objects
    }

    /// Creates an event of the gateway about the IO point or IO context with an id.
    init(_ name: String, _ idName: String, _ id: CoatyUUID, data payload: Payload) {
        // Access to the point or the context is decided when a client subscribes.
        access = .named(.routing, .anyContext)
        head = Self.head(name, [(idName, id.string)])
        data = .json(payload)
        shared = Self.shared(head, data)
        subject = .data
        key = nil
    }

    /// Creates an Advertise event from a change in the object registry.
    ///
    /// Nil is not expected: the object's JSON was checked when it was received.
    init?(_ change: ObjectChange) {
        guard let payload = try? Payload(object: change.object.bytes), let view = payload.json["object"] else {
            return nil
        }
        head = Self.head(of: change.object)
        data = .json(payload)
        shared = Self.shared(head, data)
        subject = .objects
        access = .objects(.advertise)
        key = Self.key(change.object.objectId.string)
        self.change = ObservedChange(
            kind: change.kind,
            object: (change.object, view),
            previous: change.previous.flatMap { object in object.json.map { (object, $0) } }
        )
    }

    /// Creates a copy with other data.
    ///
    /// - Parameter head: the new head; nil keeps the old one.
    init(_ other: ObservedEvent, head: [UInt8]? = nil, data payload: Payload, access: EventAccess) {
        self.head = head ?? other.head
        data = .json(payload)
        shared = Self.shared(self.head, data)
        key = other.key
        subject = other.subject
        self.access = access
        request = other.request
        change = other.change
    }

    /// Returns the key for the id of a value. Ids from the network may be long, and keys outlive the event.
    private static func key(_ id: String) -> KeyedDigest { KeyedDigest(WireName(id)) }

    private static func shared(_ head: [UInt8], _ data: Data) -> SharedBytes {
        SharedBytes(capacity: head.count + data.length)
    }

    /// Returns the head for a change of an object in the object registry.
    static func head(of object: AliveObject) -> [UInt8] {
        var text: [UInt8] = []
        appendHead(of: object, to: &text)
        return text
    }

    /// Appends the head for a change of an object in the object registry.
    static func appendHead(of object: AliveObject, to text: inout [UInt8]) {
        text += #""event":"advertise","sourceId":"#.utf8
        JSONText.append(object.owner.string, to: &text)
        text += #","since":"#.utf8
        text += String(object.since).utf8
        text += #","changed":"#.utf8
        text += String(object.changed).utf8
        text += #","data":"#.utf8
    }

    private static func head(_ name: String, _ members: [(String, String?)], isRetained: Bool = false) -> [UInt8] {
        var text = Array(#""event":"\#(name)""#.utf8)
        for case (let name, let value?) in members {
            text += #",""#.utf8
            text += name.utf8
            text += #"":"#.utf8
            JSONText.append(value, to: &text)
        }
        if isRetained { text += #","retained":true"#.utf8 }
        text += #","data":"#.utf8
        return text
    }

    /// The approximate size of the event in memory, in bytes.
    var footprint: Int {
        let previous = change?.previous.map { 2 * $0.object.size } ?? 0
        return head.count + data.footprint + previous + (change?.object.object.size ?? 0)
    }

    /// The objects that filters test.
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
    /// The value of `object`; nil if it is not an object.
    var object: JSONView? { json["object"].flatMap { $0.kind == .object ? $0 : nil } }

    /// The elements of `objects`; nil if it is not an array.
    var objects: [JSONView]? { json["objects"].flatMap { $0.kind == .array ? Array($0.elements) : nil } }
}

/// A change in the object registry, with parsed objects for filters to test.
struct ObservedChange: Sendable {
    let kind: ObjectChange.Kind
    let object: (object: AliveObject, view: JSONView)
    let previous: (object: AliveObject, view: JSONView)?
}
