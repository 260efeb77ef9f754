import Base
import Coaty
import Gate
import HTTPServer
import Network

/// `GET /v1/objects` and `GET /v1/objects/{objectId}`: the objects currently in the network.
struct ObjectsResource: Sendable {
    static let defaultLimit = 100

    let gate: Gate

    private static let path = "/v1/objects"

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path, query: .only(ObjectSelection.parameters)) { request, principal in
            do {
                let selection = try ObjectSelection(QueryParameters(request, limits: gate.limits))
                let account = request.prefersGzip ? gate.account(of: principal) : nil
                return .listing(compressedFor: account) { isWanted in
                    let query = ReadObjects(selection: selection, isWanted: isWanted)
                    return Self.list(try await gate.perform(query, by: principal))
                }
            } catch {
                return .response(Problems.of(error).response())
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

    private static func list(_ found: ReadObjects.Outcome) -> ListBody {
        ListBody(
            head: #"{"objects":["#,
            count: found.objects.count,
            element: { [found.objects[$0].bytes] },
            tail: #"],"total":\#(found.total),"complete":\#(found.isComplete)"#
                + (found.isFiltered ? #","filtered":true}"# : "}"),
            holder: found.place
        )
    }
}

extension ObjectSelection {
    /// Maximum number of properties to sort by.
    private static let maximumOrder = 16

    /// Parameter names.
    static let parameters: Set = ["coreType", "objectType", "filter", "order", "limit", "offset"]

    init(_ parameters: QueryParameters) throws {
        let coreType = try parameters.coreType("coreType")
        let objectType = try parameters.text("objectType").map(WireName.init)
        if objectType?.text.isEmpty ?? false { throw parameters.invalid("objectType", "must not be empty") }
        let maximum = parameters.limits.listedObjects
        self.init(
            coreType: coreType,
            objectType: objectType,
            filter: try parameters.condition("filter"),
            order: try parameters.text("order").map(Self.order) ?? [],
            limit: try parameters.integer("limit", in: 1...maximum) ?? min(ObjectsResource.defaultLimit, maximum),
            offset: try parameters.integer("offset", in: 0...Int(Int32.max)) ?? 0
        )
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
