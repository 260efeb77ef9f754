import Coaty
import HTTPServer

/// `GET /v1/objects` and `GET /v1/objects/{objectId}`: the objects currently in the network.
struct ObjectsResource: Sendable {
    static let defaultLimit = 100
    static let maximumLimit = 1_000

    let gate: Gate

    private static let path = "/v1/objects"

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path) { request, principal in
            let parameters = QueryParameters(request)
            return .performing {
                let selection = try ObjectSelection(parameters)
                return .json(Self.list(try gate.perform(ReadObjects(selection: selection), by: principal)))
            }
        }
        router.on(.get, Self.path + "/{objectId}") { request, principal in
            let id = CoatyUUID(wire: request.parameters["objectId"] ?? "")
            return .performing {
                let object = try gate.perform(ReadObject(id: id), by: principal)
                var json = Array(#"{"object":"#.utf8) + object.bytes
                json += #","owner":"#.utf8
                JSONText.append(object.owner.string, to: &json)
                return .json(json + #","since":\#(object.since),"changed":\#(object.changed)}"#.utf8)
            }
        }
    }

    private static func list(_ found: ReadObjects.Outcome) -> [UInt8] {
        var json = Array(#"{"objects":"#.utf8)
        JSONText.appendArray(found.objects, to: &json) { $1 += $0.bytes }
        json += #","total":\#(found.total),"complete":\#(found.isComplete)"#.utf8
        return json + "\(found.isFiltered ? #","filtered":true"# : "")}".utf8
    }
}

/// The objects that a client asks for, and their order.
struct ObjectSelection: Sendable {
    /// Maximum number of properties to order by.
    private static let maximumOrder = 16

    private let coreType: CoreType?
    private let objectType: WireName?
    private let filter: CompiledCondition?
    private let order: [OrderByProperty]
    let limit: Int
    let offset: Int

    init(_ parameters: QueryParameters) throws {
        coreType = try parameters.coreType("coreType")
        objectType = try parameters.text("objectType").map(WireName.init)
        if objectType?.text.isEmpty ?? false { throw parameters.invalid("objectType", "must not be empty") }
        filter = try parameters.condition("filter")
        order = try parameters.text("order").map(Self.order) ?? []
        limit = try parameters.integer("limit", in: 1...ObjectsResource.maximumLimit) ?? ObjectsResource.defaultLimit
        offset = try parameters.integer("offset", in: 0...Int(Int32.max)) ?? 0
    }

    /// Returns the objects of the selected types.
    func candidates(in content: RegisteredObjects) -> [AliveObject] {
        content.objects(coreType: coreType, objectType: objectType)
    }

    /// Returns the selected objects in order. Their JSON is indexed only if the filter or the order needs properties.
    func matching(_ ofType: [AliveObject]) -> [AliveObject] {
        guard filter != nil || !order.isEmpty else { return ofType }
        // No lazy sequences: collecting one counts its elements first, and so parses and filters each object several times.
        if order.isEmpty { return ofType.filter { matches($0) != nil } }
        let matching = ofType.compactMap { object in matches(object).map { (object, $0) } }
        return ObjectFilter(orderByProperties: order).select(from: matching) { $0.1 }.map(\.0)
    }

    /// Returns the properties of an object that the filter matches; nil for any other.
    private func matches(_ object: AliveObject) -> JSONView? {
        guard let json = object.json, filter?.holds(forOneOf: [json]) ?? true else { return nil }
        return json
    }

    /// Parses `name,-context.floor,["labels","com.example.floor"]`.
    private static func order(_ text: String) throws(InvalidParameter) -> [OrderByProperty] {
        let parts = parts(of: text)
        guard parts.count <= maximumOrder else {
            throw InvalidParameter(name: "order", reason: "must name at most \(maximumOrder) properties")
        }
        var order: [OrderByProperty] = []
        for part in parts {
            let isDescending = part.first == UInt8(ascii: "-")
            let name = isDescending ? part.dropFirst() : part[...]
            let property: ObjectFilterProperty
            if name.first == UInt8(ascii: "[") {
                do throws(PayloadError) {
                    property = try ObjectFilterProperty(Payload(Array(name)).json)
                } catch {
                    throw InvalidParameter(name: "order", reason: "has an array that is none of names")
                }
            } else {
                guard !name.isEmpty else { throw InvalidParameter(name: "order", reason: "has an empty property") }
                property = ObjectFilterProperty(String(decoding: name, as: UTF8.self))
            }
            order.append(OrderByProperty(properties: property, sortingOrder: isDescending ? .Desc : .Asc))
        }
        return order
    }

    /// Splits the text at commas, except those within arrays of names.
    private static func parts(of text: String) -> [[UInt8]] {
        var parts: [[UInt8]] = [[]]
        var (isArray, isString, isEscaped) = (false, false, false)
        for byte in text.utf8 {
            let part = parts.count - 1
            if byte == UInt8(ascii: ","), !isArray {
                parts.append([])
                continue
            }
            switch byte {
            case UInt8(ascii: "[") where parts[part].isEmpty || parts[part] == [UInt8(ascii: "-")]: isArray = true
            case UInt8(ascii: "]") where !isString: isArray = false
            case UInt8(ascii: "\"") where isArray && !isEscaped: isString.toggle()
            default: break
            }
            isEscaped = isString && byte == UInt8(ascii: "\\") && !isEscaped
            parts[part].append(byte)
        }
        return parts
    }
}
