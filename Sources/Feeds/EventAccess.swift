import Access
import Base
import Coaty
import Network

/// The objects or names of an event, for the check whether a principal may see it.
enum EventAccess: Sendable {
    /// Each object of the event by its own types: Advertise, Update, and the answers to requests.
    case objects(AccessPattern)
    case channel(WireName)
    case call(WireName)
    /// The requested types of a Discover or Query event, and its payload.
    case types(AccessPattern)
    /// A Deadvertise event: the last versions of its objects that were known when the event was received, and whether
    /// it contains unknown ids.
    case deadvertise([AliveObject], hasUnknown: Bool)
    /// An event without objects, by a name.
    case named(AccessPattern, AccessTarget)
}

extension EventAccess {
    /// Creates the access data of an event of any type, unchecked as on the wire.
    ///
    /// The answer to a call contains neither the operation nor any object, so only a grant for all operations covers
    /// it. A value of an IO source that is not registered here is in an unknown IO context.
    init(_ event: TrafficEvent, _ objects: ObjectRegistry, _ ioNodes: IoNodeRegistry) {
        let name = event.address.name.map { WireName($0.text) }
        switch event.address.eventType {
        case .advertise: self = .objects(.advertise)
        case .update, .complete: self = .objects(.update)
        case .resolve: self = .objects(.discover)
        case .retrieve: self = .objects(.query)
        case .discover: self = .types(.discover)
        case .query: self = .types(.query)
        case .channel: self = name.map(Self.channel) ?? .named(.channel, .none)
        case .call: self = name.map(Self.call) ?? .named(.call, .anyOperation)
        case .return: self = .named(.call, .anyOperation)
        case .associate: self = .named(.associate, name.map(AccessTarget.context) ?? .anyContext)
        case .deadvertise:
            self =
                event.payload.map { Self(DeadvertiseEventData(payload: $0), objects) }
                ?? .deadvertise([], hasUnknown: false)
        case .ioValue:
            let node = ioNodes.owned(ofPoint: event.address.sourceId)?.node
            self = .named(.iovalue, node.map { .context(WireName($0.context)) } ?? .anyContext)
        }
    }
}

extension EventAccess {
    /// Looks up the objects of a Deadvertise event.
    init(_ data: DeadvertiseEventData, _ objects: ObjectRegistry) {
        let known = objects.known(data)
        self = .deadvertise(known, hasUnknown: known.count < data.count)
    }

    /// The size of the objects that it references, in bytes.
    var size: Int {
        guard case .deadvertise(let objects, _) = self else { return 0 }
        return objects.reduce(0) { $0 + $1.size } + objects.count * MemoryLayout<AliveObject>.stride
    }
}

extension ObservedEvent {
    /// The requests that must all be allowed for a principal to see the event. Empty if they can't be determined: the
    /// event is then hidden.
    var accessRequests: [AccessRequest] {
        guard case .json(let payload) = data else {
            guard case .named(let pattern, let target) = access else { return [] }
            return [AccessRequest(verb: .observe, pattern: pattern, target: target)]
        }
        switch access {
        case .objects(let pattern): return AccessRequest.objects(.observe, pattern, payload.allObjects)
        case .channel(let id): return AccessRequest.channel(.observe, id, payload)
        case .call(let operation):
            return [
                AccessRequest(verb: .observe, pattern: .call, target: .operation(operation), request: payload.json)
            ]
        case .types(let pattern):
            var requests = AccessRequest.types(.observe, pattern, in: payload)
            for index in requests.indices { requests[index].request = payload.json }
            return requests
        case .deadvertise(let objects, let hasUnknown):
            return objects.map(AccessRequest.deadvertised) + (hasUnknown ? [.deadvertisedUnknown] : [])
        case .named(let pattern, let target): return [AccessRequest(verb: .observe, pattern: pattern, target: target)]
        }
    }

    /// The part of an event that a view may see.
    enum Visibility {
        case nothing
        case everything
        /// A Deadvertise event, which is only a list of ids, with the objects that the view may see. All other events
        /// are visible entirely or not at all, because their bytes are sent unchanged.
        case part(ObservedEvent)
    }

    func visibility(to view: AccessView) -> Visibility {
        guard case .deadvertise(let objects, let hasUnknown) = access else {
            return view.allows(accessRequests) ? .everything : .nothing
        }
        guard !objects.isEmpty || hasUnknown else { return .nothing }
        let seen = objects.filter { view.allows([.deadvertised($0)]) }
        if seen.count == objects.count, !hasUnknown || view.allows([.deadvertisedUnknown]) { return .everything }
        // A view that may see unknown ids may see all ids.
        let ids = seen.map { object in
            var json: [UInt8] = []
            JSONText.append(object.objectId.string, to: &json)
            return json
        }
        guard !ids.isEmpty,
            let payload = try? Payload(
                Array(#"{"objectIds":["#.utf8) + ids.joined(separator: ",".utf8) + "]}".utf8
            )
        else { return .nothing }
        return .part(ObservedEvent(self, data: payload, access: .deadvertise(seen, hasUnknown: false)))
    }
}

extension AccessRequest {
    fileprivate static func deadvertised(_ object: AliveObject) -> AccessRequest {
        object.request(.observe, .deadvertise)
    }

    fileprivate static let deadvertisedUnknown = AccessRequest(
        verb: .observe,
        pattern: .deadvertise,
        target: .anyObject
    )
}

extension ObservedChange {
    /// Whether a view may see the object before and after the change.
    struct Visibility: Sendable {
        let before: Bool
        let after: Bool
    }

    func visibility(to view: AccessView) -> Visibility {
        func isVisible(_ object: AliveObject) -> Bool { view.allows([object.request(.observe, .advertise)]) }
        return Visibility(
            before: (kind == .removed ? object : previous).map { isVisible($0.object) } ?? false,
            after: kind != .removed && isVisible(object.object)
        )
    }

    /// Returns the event for a view that may no longer see an object: its removal, without the new version.
    func departure(from event: ObservedEvent) -> ObservedEvent? {
        guard let before = previous?.object else { return nil }
        var json = Array(#"{"object":{"objectId":"#.utf8)
        JSONText.append(before.objectId.string, to: &json)
        json += #","coreType":"\#(before.coreType.rawValue)","objectType":"#.utf8
        JSONText.append(before.objectType.text, to: &json)
        return (try? Payload(json + "}}".utf8)).map { payload in
            ObservedEvent(event, head: ObservedEvent.head(of: before), data: payload, access: event.access)
        }
    }
}
