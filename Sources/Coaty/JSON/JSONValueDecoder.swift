import Foundation

/// Decodes values from their places in a checked text.
///
/// Decodes what Foundation's `JSONDecoder` decodes, and fails where it fails, with the same coding paths, except:
/// - of several members with the same name the last one counts, not the first;
/// - a lone surrogate in a string is read as U+FFFD, not refused;
/// - a number that does not fit is refused with its coding path, not with an empty one;
/// - zero with an exponent, such as `0e5`, is 0, and not refused, and integers of 128 bits are exact;
/// - names are equal if their bytes are: `é` and `e` with an accent are two names.
///
/// The time is linear in the text, whatever its shape: nothing is searched from the start of the text, and an error
/// costs no more than the depth of its place.
final class JSONValueDecoder: Decoder {
    /// The decoded value; nil stands for `null` in place of a missing member.
    let json: JSONView?
    private let parent: JSONValueDecoder?
    private let key: (any CodingKey)?
    /// The members that were looked up; nil if they are not recorded.
    private var lookedUp: LookedUpMembers?

    /// Creates a decoder of a value, whose coding path is empty.
    init(_ json: JSONView) {
        self.json = json
        parent = nil
        key = nil
    }

    private init(_ json: JSONView?, in parent: JSONValueDecoder?, _ key: (any CodingKey)?) {
        self.json = json
        self.parent = parent
        self.key = key
    }

    /// Returns a decoder of the same value that records which members are looked up. A decoder that records already
    /// records these too.
    func recording() -> JSONValueDecoder {
        let decoder = JSONValueDecoder(json, in: parent, key)
        decoder.lookedUp = lookedUp ?? LookedUpMembers()
        return decoder
    }

    /// Returns the member of the object with a name.
    @inline(__always)
    func member(named name: String) -> JSONView? {
        guard let member = json?.member(named: name) else { return nil }
        lookedUp?.places.insert(member.index)
        return member
    }

    /// Records that the whole value was read.
    func noteAll() { lookedUp?.areAll = true }

    /// The members of the object that were not looked up, since ``recording()``.
    var unread: [String: AnyCodable] {
        guard let json, let lookedUp, !lookedUp.areAll else { return [:] }
        var members: [String: AnyCodable] = [:]
        for (key, value) in json.members where !lookedUp.places.contains(value.index) {
            // Of members with the same name only the last one is looked up.
            guard let name = key.string, json.member(named: name)?.index == value.index else { continue }
            members[name] = AnyCodable(value)
        }
        return members
    }

    /// The keys from the root to the value.
    var codingPath: [any CodingKey] {
        var path: [any CodingKey] = []
        var decoder = self
        while let key = decoder.key, let parent = decoder.parent {
            path.append(key)
            decoder = parent
        }
        return path.reversed()
    }

    /// Empty.
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard let json, json.kind == .object else { throw mismatch([String: Any].self, json, nil) }
        return KeyedDecodingContainer(JSONKeyedDecodingContainer(decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard let json, json.kind == .array else { throw mismatch([Any].self, json, nil) }
        return JSONUnkeyedDecodingContainer(decoder: self, array: json)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    /// Returns the decoder of a part of the value.
    func decoder(of part: JSONView?, _ key: any CodingKey) -> JSONValueDecoder {
        JSONValueDecoder(part, in: self, key)
    }
}

/// The members of an object that a decoder was asked for.
private final class LookedUpMembers {
    /// The indexes of their values.
    var places = Set<Int>(minimumCapacity: 16)
    var areAll = false
}

/// The values that JSON represents without structure. `key` is the key of the value in the decoder's value, which
/// is only needed for errors; nil for that value itself.
extension JSONValueDecoder {
    @inline(__always)
    func bool(_ json: JSONView?, _ key: @autoclosure () -> (any CodingKey)?) throws -> Bool {
        guard let bool = json?.bool else {
            throw DecodingError.typeMismatch(Bool.self, context(json, Bool.self, key()))
        }
        return bool
    }

    @inline(__always)
    func string(_ json: JSONView?, _ key: @autoclosure () -> (any CodingKey)?) throws -> String {
        guard let string = json?.string else { throw mismatch(String.self, json, key()) }
        return string
    }

    @inline(__always)
    func double(_ json: JSONView?, _ key: @autoclosure () -> (any CodingKey)?) throws -> Double {
        guard let json, let number = json.number else { throw mismatch(Double.self, json, key()) }
        // Overflow reads as infinity, and underflow as 0.
        guard number.isFinite, number != 0 || json.withBytes(JSONNumber.isZero) else {
            throw misfit(json, Double.self, key())
        }
        return number
    }

    func float(_ json: JSONView?, _ key: @autoclosure () -> (any CodingKey)?) throws -> Float {
        guard let json, json.kind == .number else { throw mismatch(Float.self, json, key()) }
        guard let number = Float(json.withBytes(JSONNumber.string)), number.isFinite,
            number != 0 || json.withBytes(JSONNumber.isZero)
        else { throw misfit(json, Float.self, key()) }
        return number
    }

    @inline(__always)
    func integer<Integer: FixedWidthInteger>(
        _ json: JSONView?,
        _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> Integer {
        guard let json, json.kind == .number else { throw mismatch(Integer.self, json, key()) }
        guard let integer: Integer = json.withBytes({ JSONNumber.integralValue($0) }) else {
            throw misfit(json, Integer.self, key())
        }
        return integer
    }

    /// Decodes a value of any type. The types that Foundation represents otherwise than they encode themselves are
    /// read as Foundation writes them.
    func value<Value: Decodable>(_ type: Value.Type, _ json: JSONView?, _ key: (any CodingKey)?) throws -> Value {
        if type == Date.self || type == Data.self || type == URL.self || type == Decimal.self {
            return try foundationValue(type, json, key)
        }
        // The most frequent type of objects needs no decoder of its own. `Value` is this type, so the bits are its own;
        // a cast would cost what ``foundationValue(_:_:_:)`` avoids.
        if type == CoatyUUID.self { return unsafeBitCast(CoatyUUID(wire: try string(json, key)), to: type) }
        guard let key else { return try Value(from: self) }
        return try Value(from: decoder(of: json, key))
    }

    /// Separate, because a cast to `Value` costs ``value(_:_:_:)`` as much as a member, whether it is reached or not.
    @inline(never)
    private func foundationValue<Value>(_ type: Value.Type, _ json: JSONView?, _ key: (any CodingKey)?) throws -> Value
    {
        guard let value = try foundationValue(any: type, json, key) as? Value else {
            throw mismatch(type, json, key)
        }
        return value
    }

    private func foundationValue(any type: Any.Type, _ json: JSONView?, _ key: (any CodingKey)?) throws -> Any {
        guard let json, json.kind != .null else { throw mismatch(type, json, key) }
        if type == Date.self { return Date(timeIntervalSinceReferenceDate: try double(json, key)) }
        if type == Decimal.self {
            guard json.kind == .number else { throw mismatch(type, json, key) }
            guard let decimal = Decimal(string: json.withBytes(JSONNumber.string)) else {
                throw misfit(json, type, key)
            }
            return decimal
        }
        let text = try string(json, key)
        guard let value: Any = type == Data.self ? Data(base64Encoded: text) : URL(string: text) else {
            throw misfit(json, type, key)
        }
        return value
    }
}

extension JSONValueDecoder {
    /// Returns the coding path of a part.
    func path(_ key: (any CodingKey)?) -> [any CodingKey] { codingPath + (key.map { [$0] } ?? []) }

    private func mismatch(_ type: Any.Type, _ json: JSONView?, _ key: (any CodingKey)?) -> DecodingError {
        let context = context(json, type, key)
        return json == nil || json?.kind == .null ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    private func misfit(_ json: JSONView, _ type: Any.Type, _ key: (any CodingKey)?) -> DecodingError {
        let text = json.shortText ?? "the \(json.kind)"
        return .dataCorrupted(.init(codingPath: path(key), debugDescription: "\(text) is not a valid \(type)"))
    }

    private func context(_ json: JSONView?, _ type: Any.Type, _ key: (any CodingKey)?) -> DecodingError.Context {
        .init(codingPath: path(key), debugDescription: "expected \(type), not \(json?.kind ?? .null)")
    }
}

extension JSONValueDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { json == nil || json?.kind == .null }
    func decode(_ type: Bool.Type) throws -> Bool { try bool(json, nil) }
    func decode(_ type: String.Type) throws -> String { try string(json, nil) }
    func decode(_ type: Double.Type) throws -> Double { try double(json, nil) }
    func decode(_ type: Float.Type) throws -> Float { try float(json, nil) }
    func decode(_ type: Int.Type) throws -> Int { try integer(json, nil) }
    func decode(_ type: Int8.Type) throws -> Int8 { try integer(json, nil) }
    func decode(_ type: Int16.Type) throws -> Int16 { try integer(json, nil) }
    func decode(_ type: Int32.Type) throws -> Int32 { try integer(json, nil) }
    func decode(_ type: Int64.Type) throws -> Int64 { try integer(json, nil) }
    func decode(_ type: Int128.Type) throws -> Int128 { try integer(json, nil) }
    func decode(_ type: UInt.Type) throws -> UInt { try integer(json, nil) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(json, nil) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(json, nil) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(json, nil) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(json, nil) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(json, nil) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try value(type, json, nil) }
}

/// A key that is known only at run time, or the position of an element.
enum JSONKey: CodingKey {
    case name(String)
    case index(Int)

    init(stringValue: String) { self = .name(stringValue) }
    init(intValue: Int) { self = .index(intValue) }

    var stringValue: String {
        switch self {
        case .name(let name): name
        case .index(let index): "Index \(index)"
        }
    }

    var intValue: Int? { if case .index(let index) = self { index } else { nil } }

    /// The key of a base class, where it does not share its subclass's container.
    static let base = JSONKey.name("super")
}
