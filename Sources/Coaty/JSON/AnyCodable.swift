import Foundation

/// Any JSON value, for properties whose structure is not known in advance.
///
/// 64-bit integers keep their exact value; other numbers are doubles.
public enum AnyCodable: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    /// An integer that fits only into an unsigned type.
    case unsignedInteger(UInt64)
    case double(Double)
    case string(String)
    case array([AnyCodable])
    case object([String: AnyCodable])

    /// The value as plain Swift: `NSNull`, `Bool`, `Int`, `UInt64`, `Double`, `String`, `[Any]` or `[String: Any]`.
    public var value: Any {
        switch self {
        case .null: NSNull()
        case .bool(let bool): bool
        case .integer(let integer): Int(integer)
        case .unsignedInteger(let integer): integer
        case .double(let double): double
        case .string(let string): string
        case .array(let elements): elements.map(\.value)
        case .object(let members): members.mapValues(\.value)
        }
    }

    /// Creates the JSON value of a plain Swift value, or of the raw value of an enumeration; nil if JSON can't
    /// represent it.
    public init?(any value: Any) {
        switch value {
        case let json as AnyCodable: self = json
        case is NSNull: self = .null
        case let bool as Bool: self = .bool(bool)
        case let integer as any BinaryInteger:
            if let signed = Int64(exactly: integer) {
                self = .integer(signed)
            } else if let unsigned = UInt64(exactly: integer) {
                self = .unsignedInteger(unsigned)
            } else {
                return nil
            }
        case let double as Double:
            guard double.isFinite else { return nil }
            self = .double(double)
        case let float as Float:
            guard float.isFinite else { return nil }
            self = .double(Double(float))
        case let string as String: self = .string(string)
        case let id as CoatyUUID: self = .string(id.string)
        case let raw as any RawRepresentable:
            guard let json = AnyCodable(any: raw.rawValue) else { return nil }
            self = json
        case let elements as [Any]:
            var array: [AnyCodable] = []
            for element in elements {
                guard let json = AnyCodable(any: element) else { return nil }
                array.append(json)
            }
            self = .array(array)
        case let members as [String: Any]:
            var object: [String: AnyCodable] = [:]
            for (key, member) in members {
                guard let json = AnyCodable(any: member) else { return nil }
                object[key] = json
            }
            self = .object(object)
        default: return nil
        }
    }

    /// Creates the value at a place in a checked JSON text.
    public init(_ view: JSONView) {
        switch view.kind {
        case .null: self = .null
        case .bool: self = .bool(view.bool ?? false)
        case .string: self = .string(view.string ?? "")
        case .number: self = view.withBytes { AnyCodable(number: $0) }
        case .array: self = .array(view.elements.map { AnyCodable($0) })
        case .object:
            var object: [String: AnyCodable] = [:]
            for (key, value) in view.members { object[key.string ?? ""] = AnyCodable(value) }
            self = .object(object)
        }
    }

    private init(number text: Span<UInt8>) {
        if let integer: Int64 = JSONNumber.integer(text) {
            self = .integer(integer)
        } else if let integer: UInt64 = JSONNumber.integer(text) {
            self = .unsignedInteger(integer)
        } else {
            self = .double(JSONNumber.double(text))
        }
    }
}

extension AnyCodable {
    /// The approximate number of bytes that the value uses in memory.
    public var footprint: Int {
        switch self {
        case .string(let string): MemoryLayout<Self>.stride + string.utf8.count
        case .array(let elements): elements.reduce(MemoryLayout<Self>.stride) { $0 + $1.footprint }
        case .object(let members):
            members.reduce(MemoryLayout<Self>.stride) { $0 + $1.key.utf8.count + $1.value.footprint }
        default: MemoryLayout<Self>.stride
        }
    }

    /// Returns the JSON values of plain Swift values. A value that JSON can't represent becomes NaN, so that encoding
    /// it throws.
    static func members(_ values: [String: Any]) -> [String: AnyCodable] {
        values.mapValues { AnyCodable(any: $0) ?? .double(.nan) }
    }

    /// Creates a Boolean value.
    public init(_ bool: Bool) { self = .bool(bool) }

    /// Creates an integer. One that exceeds 64 bits becomes a double, as in JSON decoding.
    public init(_ integer: some BinaryInteger) {
        if let signed = Int64(exactly: integer) {
            self = .integer(signed)
        } else if let unsigned = UInt64(exactly: integer) {
            self = .unsignedInteger(unsigned)
        } else {
            self = .double(Double(integer))
        }
    }

    /// Creates a number. JSON can't represent non-finite numbers: encoding them throws.
    public init(_ double: Double) { self = .double(double) }

    /// Creates a string.
    public init(_ string: String) { self = .string(string) }

    /// Creates the JSON string of an id.
    public init(_ id: CoatyUUID) { self = .string(id.string) }

    /// Creates an array.
    public init(_ elements: [AnyCodable]) { self = .array(elements) }

    /// Creates an object.
    public init(_ members: [String: AnyCodable]) { self = .object(members) }
}

extension AnyCodable: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }

    /// Creates a Boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }

    /// Creates a number.
    public init(floatLiteral value: Double) { self = .double(value) }

    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// Creates an array.
    public init(arrayLiteral elements: AnyCodable...) { self = .array(elements) }

    /// Creates an object. If several members have the same name, the last one wins, as in JSON decoding.
    public init(dictionaryLiteral elements: (String, AnyCodable)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}

extension AnyCodable: Codable {
    /// Decodes any JSON value.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? JSONValueDecoder {
            decoder.noteAll()
            self = decoder.json.map { AnyCodable($0) } ?? .null
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let string = try? container.decode(String.self) {
            self = .string(string)
        } else if let bool = try? container.decode(Bool.self) {
            self = .bool(bool)
        } else if let integer = try? container.decode(Int64.self) {
            self = .integer(integer)
        } else if let integer = try? container.decode(UInt64.self) {
            self = .unsignedInteger(integer)
        } else if let double = try? container.decode(Double.self) {
            self = .double(double)
        } else if let array = try? container.decode([AnyCodable].self) {
            self = .array(array)
        } else {
            self = .object(try container.decode([String: AnyCodable].self))
        }
    }

    /// Encodes the value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let bool): try container.encode(bool)
        case .integer(let integer): try container.encode(integer)
        case .unsignedInteger(let integer): try container.encode(integer)
        case .double(let double): try container.encode(double)
        case .string(let string): try container.encode(string)
        case .array(let elements): try container.encode(elements)
        case .object(let members): try container.encode(members)
        }
    }
}
