import Coaty
import ProblemDetails
import TestSupport

@testable import Access
@testable import Base
@testable import CoatyTestSupport
@testable import Edge
@testable import Feeds
@testable import Gate
@testable import Network

/// A random policy, matching events and operations, and the results that the reference expects for them.
struct GateWorld {
    struct Token {
        let name: String
        let grants: [AnyCodable]
        let principal: AnyCodable
    }

    /// A published event: the grants that it needs, and its name according to ``name(_:)``.
    struct Event {
        let pattern: AccessPattern
        /// Names by the dimensions of grants.
        let observation: Observation?
        let needs: [Need]
        let name: String
        /// The ids of a Deadvertise event, with the grants that each needs.
        var ids: [(id: String, need: Need)] = []
        /// The id and the former object of an Advertise event.
        var change: (id: String, before: AnyCodable?)?
        var object: AnyCodable?
    }

    /// One request to the reference.
    struct Need {
        let key: String?
        var name: String?
        var core: String?
        var object: AnyCodable?
        var request: AnyCodable?
        var isOfOthers = false
    }

    static let types = ["com.example.Lamp", "com.example.Door", "com.other.Gate"]
    static let channels = ["hall.1", "hall.2", "yard"]

    private(set) var objects: [String: AnyCodable] = [:]
    private(set) var published: [Event] = []
    private(set) var tokens: [Token] = []
    let policy: Policy
    /// The policy as JSON, for messages of failed tests.
    let text: String
    private var generator: AccessGenerator
    private var number = 0
    private let agent = CoatyUUID().string

    init(seed: UInt64) throws {
        var generator = AccessGenerator(seed: seed)
        var tokens: [Token] = []
        var roles: [String: AnyCodable] = [:]
        var list: [AnyCodable] = [
            ["name": "admin", "sha256": .string(String(repeating: "f", count: 64)), "roles": ["admin"]]
        ]
        for index in 0..<4 {
            var grants: [AnyCodable] = []
            for _ in 0...4 { grants.append(Self.grant(&generator)) }
            let attributes = generator.attributes()
            let (role, name) = ("r\(index)", "t\(index)")
            roles[role] = .array(grants)
            list.append([
                "name": .string(name), "sha256": .string(String(repeating: "\(index)", count: 64)),
                "roles": [.string(role)], "attributes": attributes,
            ])
            let principal: AnyCodable = ["name": .string(name), "roles": [.string(role)], "attributes": attributes]
            tokens.append(Token(name: name, grants: grants, principal: principal))
        }
        text = try PayloadCoder.encode(["tokens": .array(list), "roles": .object(roles)] as AnyCodable)
        policy = Policy(try AccessConfiguration(json: text), dialect: .plain)
        self.tokens = tokens
        self.generator = generator
    }

    private static func grant(_ generator: inout AccessGenerator) -> AnyCodable {
        let types: AnyCodable = .array(
            generator.pick([["*"], ["com.example.*"], ["com.example.Lamp", "com.other.*"], ["CoatyObject"], ["*"]])
        )
        let names: AnyCodable = .array(generator.pick([["*"], ["hall.*"], ["hall.1", "yard"]]))
        let verb = generator.pick([Verb.observe, .observe, .observe, .publish, .request, .read])
        let byObject: [AccessPattern] =
            switch verb {
            case .publish: [.advertise, .deadvertise, .channel]
            case .request: [.update, .query, .discover]
            case .read: [.objects]
            default: [.advertise, .deadvertise, .update, .channel]
            }
        let byRequest: [AccessPattern] =
            verb == .observe ? [.call, .discover, .query] : verb == .request ? [.call] : []
        let isByRequest = !byRequest.isEmpty && generator.chance(0.3)
        if verb == .observe, generator.chance(0.15) { return ["observe": ["traffic"]] }
        var patterns = [generator.pick(isByRequest ? byRequest : byObject)]
        if generator.chance(0.6),
            let other = (isByRequest ? byRequest : byObject).first(where: { !patterns.contains($0) })
        {
            patterns.append(other)
        }
        var members: [String: AnyCodable] = [verb.rawValue: .array(patterns.map { .string($0.rawValue) })]
        for dimension in patterns.compactMap({ verb.rule(of: $0)?.dimension }) {
            members[dimension.rawValue] = dimension == .types ? types : names
        }
        if generator.chance(0.7) { members["where"] = generator.condition(root: isByRequest ? "request" : "object") }
        return .object(members)
    }

    // MARK: - Reference

    private func isAllowed(_ verb: Verb, _ pattern: AccessPattern, _ need: Need, _ token: Token) -> Bool {
        covering(verb, pattern, need, token).contains { reference(need, token).truth($0["where"] ?? ["and": []]) == 1 }
    }

    private func covering(_ verb: Verb, _ pattern: AccessPattern, _ need: Need, _ token: Token) -> [AnyCodable] {
        var request = AccessRequest(verb: verb, pattern: pattern)
        request.isOfOthers = need.isOfOthers
        let asked = AccessCase(request: request, key: need.key, name: need.name, core: need.core, roots: [:])
        return token.grants.filter { reference(need, token).covers($0, asked) }
    }

    private func reference(_ need: Need, _ token: Token) -> ReferencePolicy {
        var roots = ["principal": token.principal]
        roots["object"] = need.object
        roots["request"] = need.request
        return ReferencePolicy(grants: token.grants, roots: roots)
    }

    private func hasGrant(_ pattern: AccessPattern, _ token: Token) -> Bool {
        token.grants.contains { $0["observe"]?.texts.contains(pattern.rawValue) ?? false }
    }

    func admits(_ observation: Observation, _ token: Token) -> Bool {
        func covered(_ pattern: AccessPattern, _ need: Need) -> Bool {
            !covering(.observe, pattern, need, token).isEmpty
        }
        return switch observation {
        case .advertise(let kind), .objects(let kind?): covered(.advertise, Need(kind))
        case .update(let kind): covered(.update, Need(kind))
        case .channel(let id): covered(.channel, Need(key: "channels", name: id.text))
        case .call(let operation): covered(.call, Need(key: "operations", name: operation.text))
        case .objects(nil): hasGrant(.advertise, token)
        case .deadvertise: hasGrant(.deadvertise, token)
        case .discover: hasGrant(.discover, token)
        case .query: hasGrant(.query, token)
        case .traffic: hasGrant(.traffic, token)
        default: false
        }
    }

    private func maySee(_ object: AnyCodable, _ token: Token) -> Bool {
        isAllowed(.observe, .advertise, Need(object), token)
    }

    func snapshot(_ observation: Observation, _ name: String) -> Set<String> {
        guard let token = tokens.first(where: { $0.name == name }), case .objects(let kind) = observation else {
            return []
        }
        return Set(
            objects.values.filter { maySee($0, token) && kind.map($0.isOf) ?? true }
                .compactMap { $0["k"].map { "added \($0.digits)" } }
        )
    }

    /// Returns the names of the published events that a subscription sees, and the number of events that it does not
    /// see.
    func expected(_ observation: Observation, _ name: String) -> (seen: [String], hidden: Int) {
        guard let token = tokens.first(where: { $0.name == name }) else { return ([], 0) }
        var (seen, hidden): ([String], Int) = ([], 0)
        for event in published where event.isSelected(by: observation) {
            let names: [String]
            if case .objects(let kind) = observation {
                names = change(event, kind, token)
            } else if event.pattern == .deadvertise {
                let ids = event.ids.filter { isAllowed(.observe, .deadvertise, $0.need, token) }.map(\.id)
                names = ids.isEmpty ? [] : ["gone " + ids.joined(separator: " ")]
            } else {
                let isSeen =
                    !event.needs.isEmpty && event.needs.allSatisfy { isAllowed(.observe, event.pattern, $0, token) }
                names = isSeen ? [event.name] : []
            }
            seen += names
            hidden += names.isEmpty ? 1 : 0
        }
        return (seen, hidden)
    }

    private func change(_ event: Event, _ kind: ObjectKind?, _ token: Token) -> [String] {
        func isSeen(_ object: AnyCodable?) -> Bool {
            object.map { maySee($0, token) && kind.map($0.isOf) ?? true } ?? false
        }
        if event.pattern == .deadvertise {
            return event.ids.filter { isSeen($0.need.object) }.map { "removed \($0.need.object?["k"]?.digits ?? "")" }
        }
        guard let change = event.change, let object = event.object else { return [] }
        return switch (isSeen(change.before), isSeen(object)) {
        case (false, true): ["added \(object["k"]?.digits ?? "")"]
        case (true, true): ["changed \(object["k"]?.digits ?? "")"]
        // Hidden versions must not be delivered.
        case (true, false): maySee(object, token) ? ["removed \(object["k"]?.digits ?? "")"] : ["removed \(change.id)"]
        case (false, false): []
        }
    }

    // MARK: - Events

    mutating func observation() -> Observation {
        let kind: ObjectKind =
            generator.chance(0.5) ? .object(WireName(generator.pick(Self.types))) : .core(.CoatyObject)
        return switch Int.random(in: 0..<11, using: &generator.random) {
        case 0, 1: .advertise(kind)
        case 2: .objects(nil)
        case 3: .objects(kind)
        case 4: .update(kind)
        case 5, 6: .channel(WireName(generator.pick(Self.channels)))
        case 7: .call(operation: WireName(generator.pick(Self.channels)))
        case 8: generator.chance(0.5) ? .discover : .query
        case 9: .deadvertise
        default: .traffic(Set(CommunicationEventType.allCases))
        }
    }

    private mutating func object(_ id: String? = nil) -> AnyCodable {
        number += 1
        var members: [String: AnyCodable] = [:]
        if case .object(let random) = generator.object() { members = random }
        members["k"] = .integer(Int64(number))
        members["objectId"] = .string(id ?? CoatyUUID().string)
        members["objectType"] = id.flatMap { objects[$0]?["objectType"] } ?? .string(generator.pick(Self.types))
        members["coreType"] = "CoatyObject"
        members["name"] = "o"
        return .object(members)
    }

    /// Publishes an event on the topics that agents use for its pattern.
    private func publish(
        _ code: String,
        _ names: [String],
        _ payload: AnyCodable,
        on broker: TopicBroker,
        isRequest: Bool = false
    ) {
        guard let text = try? PayloadCoder.encode(payload) else { return }
        let correlation = isRequest ? "/\(CoatyUUID())" : ""
        for name in names.isEmpty ? [""] : names {
            broker.publish(topic: "coaty/3/-/\(code)\(name)/\(agent)\(correlation)", payload: Array(text.utf8))
        }
    }

    /// Advertises a new object, or a known one again.
    mutating func advertise(on broker: TopicBroker) {
        let known = generator.chance(0.4) ? objects.keys.sorted().randomElement(using: &generator.random) : nil
        let object = object(known)
        let (id, type) = (object["objectId"]?.text ?? "", object["objectType"]?.text ?? "")
        publish("ADV", [":CoatyObject", "::\(type)"], ["object": object], on: broker)
        var event = Event(pattern: .advertise, observation: nil, needs: [Need(object)], name: "event \(number)")
        event.change = (id, objects[id])
        event.object = object
        objects[id] = object
        if isCounted { published.append(event) }
    }

    /// Whether events belong to the subscriptions, and not to the state before them.
    private var isCounted = false

    mutating func publishEvent(on broker: TopicBroker) {
        isCounted = true
        switch Int.random(in: 0..<8, using: &generator.random) {
        case 0, 1: advertise(on: broker)
        case 2, 3:
            let channel = generator.pick(Self.channels)
            let list = (0..<Int.random(in: 0...2, using: &generator.random)).map { _ in object() }
            number += 1
            var payload: [String: AnyCodable] = ["privateData": ["k": .integer(Int64(number))]]
            if list.count == 1 { payload["object"] = list[0] } else { payload["objects"] = .array(list) }
            publish("CHN", [":\(channel)"], .object(payload), on: broker)
            let needs =
                list.isEmpty
                ? [Need(key: "channels", name: channel)] : list.map { Need(key: "channels", name: channel, object: $0) }
            add(.channel, .channel(WireName(channel)), needs)
        case 4:
            let object = object()
            publish(
                "UPD",
                [":CoatyObject", "::\(object["objectType"]?.text ?? "")"],
                ["object": object],
                on: broker,
                isRequest: true
            )
            var event = Event(pattern: .update, observation: nil, needs: [Need(object)], name: "event \(number)")
            event.object = object
            published.append(event)
        case 5:
            let operation = generator.pick(Self.channels)
            let payload = request(["parameters": []])
            publish("CLL", [":\(operation)"], payload, on: broker, isRequest: true)
            add(
                .call,
                .call(operation: WireName(operation)),
                [Need(key: "operations", name: operation, request: payload)]
            )
        case 6:
            let isQuery = generator.chance(0.5)
            let types = (0...Int.random(in: 0...1, using: &generator.random)).map { _ in generator.pick(Self.types) }
            let payload = request(["objectTypes": .array(types.map { .string($0) })])
            publish(isQuery ? "QRY" : "DSC", [], payload, on: broker, isRequest: true)
            let needs = types.map { Need(key: "types", name: $0, request: payload) }
            add(isQuery ? .query : .discover, isQuery ? .query : .discover, needs)
        default: deadvertise(on: broker)
        }
    }

    private mutating func request(_ members: [String: AnyCodable]) -> AnyCodable {
        number += 1
        var all = members
        if case .object(let random) = generator.object() { all.merge(random) { own, _ in own } }
        all["k"] = .integer(Int64(number))
        return .object(all)
    }

    private mutating func add(_ pattern: AccessPattern, _ observation: Observation, _ needs: [Need]) {
        published.append(Event(pattern: pattern, observation: observation, needs: needs, name: "event \(number)"))
    }

    private mutating func deadvertise(on broker: TopicBroker) {
        var ids = objects.keys.sorted().shuffled(using: &generator.random).prefix(2).map(\.self)
        if generator.chance(0.2) { ids.append(CoatyUUID().string) }
        guard !ids.isEmpty else { return }
        publish("DAD", [], ["objectIds": .array(ids.map { .string($0) })], on: broker)
        var event = Event(pattern: .deadvertise, observation: .deadvertise, needs: [], name: "")
        event.ids = ids.map { id in (id, objects[id].map { Need($0) } ?? Need(key: "types")) }
        for id in ids { objects[id] = nil }
        published.append(event)
    }

    /// Returns the name of the event in a frame: the number in its data and the change of a snapshot, or the ids of
    /// deadvertised objects.
    static func name(_ frame: JSONView) -> String? {
        guard frame["op"]?.string == "event", let data = frame["data"] else { return nil }
        let object = data["object"]
        // Skips the gateway's own identity.
        if object?["coreType"]?.string == CoreType.Identity.rawValue { return nil }
        if let change = frame["change"]?.string {
            let number = object?["k"]?.number.map { String(Int($0)) }
            return "\(change) \(number ?? object?["objectId"]?.string ?? "")"
        }
        if let ids = data["objectIds"] { return "gone " + ids.elements.compactMap(\.string).joined(separator: " ") }
        let number = data["privateData"]?["k"] ?? object?["k"] ?? data["k"]
        return number?.number.map { "event \(Int($0))" }
    }

    // MARK: - Operations

    /// Returns a random operation, the expected result for a token, and a description.
    mutating func operation() -> (
        refusal: (Gate, Principal) -> Problem?, isAllowed: (Token) -> Bool, description: String
    ) {
        let world = self
        func needs(_ verb: Verb, _ pattern: AccessPattern, _ needs: [Need]) -> (Token) -> Bool {
            { token in !needs.isEmpty && needs.allSatisfy { world.isAllowed(verb, pattern, $0, token) } }
        }
        let known = generator.chance(0.5) ? objects.keys.sorted().randomElement(using: &generator.random) : nil
        let object = object(known)
        let versions = [Need(object)] + (known.flatMap { objects[$0] }.map { [Need($0)] } ?? [])
        func payload(_ json: AnyCodable) -> Payload? {
            try? Payload(Array(PayloadCoder.encode(json).utf8))
        }
        func publish(_ publication: (any ClientPublication)?) -> (Gate, Principal) -> Problem? {
            func refusal(_ publication: some ClientPublication, _ gate: Gate, _ principal: Principal) -> Problem? {
                gate.refusal(of: Publish(publication: publication), by: principal)
            }
            return { gate, principal in publication.flatMap { refusal($0, gate, principal) } }
        }
        func send(_ request: (any ClientRequest)?) -> (Gate, Principal) -> Problem? {
            let options = try? RequestOptions(QueryParameters(items: [], limits: Limits()))
            return { gate, principal in
                guard let request, let options else { return nil }
                return gate.refusal(of: SendRequest(request: request, options: options), by: principal)
            }
        }
        switch Int.random(in: 0..<5, using: &generator.random) {
        case 0:
            let event = payload(["object": object]).flatMap { try? AdvertiseEvent(payload: $0) }
            return (
                publish(event), needs(.publish, .advertise, versions),
                "advertises \(object)"
            )
        case 1:
            let event = payload(["object": object]).flatMap { try? UpdateEvent(payload: $0) }
            return (send(event), needs(.request, .update, versions), "updates \(object)")
        case 2:
            let channel = generator.pick(Self.channels)
            let event = payload(["objects": [object]]).flatMap { try? ChannelEvent(channelId: channel, payload: $0) }
            let need = Need(key: "channels", name: channel, object: object)
            return (
                publish(event), needs(.publish, .channel, [need]), "sends on \(channel)"
            )
        case 3:
            let operation = generator.pick(Self.channels)
            let json = request(["parameters": []])
            let event = payload(json).flatMap { try? CallEvent(operation: operation, payload: $0) }
            let need = Need(key: "operations", name: operation, request: json)
            return (send(event), needs(.request, .call, [need]), "calls \(operation)")
        default:
            let id = objects.keys.sorted().randomElement(using: &generator.random) ?? CoatyUUID().string
            let event = payload(["objectIds": [.string(id)]]).flatMap { try? DeadvertiseEvent(payload: $0) }
            let need = objects[id].map { Need($0) } ?? Need(key: "types")
            return (
                publish(event), needs(.publish, .deadvertise, [need]),
                "removes \(id)"
            )
        }
    }
}

extension GateWorld.Need {
    /// Creates the need of an object from its types.
    init(_ object: AnyCodable) {
        self.init(key: "types", name: object["objectType"]?.text, core: object["coreType"]?.text, object: object)
    }

    init(_ kind: ObjectKind) {
        switch kind {
        case .core(let coreType): self.init(key: "types", core: coreType.rawValue)
        case .object(let objectType): self.init(key: "types", name: objectType.text)
        }
    }
}

extension GateWorld.Event {
    /// Returns whether an observation selects the event, regardless of access.
    func isSelected(by observation: Observation) -> Bool {
        switch observation {
        case .traffic: true
        case .objects: change != nil || pattern == .deadvertise
        case .advertise(let kind): pattern == .advertise && object.map(kind.isOf) ?? false
        case .update(let kind): pattern == .update && object.map(kind.isOf) ?? false
        default: self.observation == observation
        }
    }
}

extension ObjectKind {
    func isOf(_ object: AnyCodable) -> Bool { object.isOf(self) }
}

extension AnyCodable {
    fileprivate func isOf(_ kind: ObjectKind) -> Bool {
        switch kind {
        case .core(let coreType): self["coreType"]?.text == coreType.rawValue
        case .object(let objectType): self["objectType"]?.text == objectType.text
        }
    }

    fileprivate var digits: String {
        if case .integer(let number) = self { String(number) } else { "" }
    }
}
