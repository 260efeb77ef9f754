/// The members of a JSON object.
struct JSONKeyedDecodingContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    /// The decoder of the object. Nothing else is stored, because the container is copied for each member.
    let decoder: JSONValueDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }

    /// The names of all members that are keys, each once.
    var allKeys: [Key] {
        guard let object = decoder.json else { return [] }
        return object.members.compactMap { name, value in
            guard let name = name.string, object.member(named: name)?.index == value.index else { return nil }
            return Key(stringValue: name)
        }
    }

    func contains(_ key: Key) -> Bool { find(key) != nil }

    @inline(__always)
    private func find(_ key: Key) -> JSONView? { decoder.member(named: key.stringValue) }

    @inline(__always)
    private func member(_ key: Key) throws -> JSONView {
        guard let member = find(key) else { throw missing(key) }
        return member
    }

    @inline(never)
    private func missing(_ key: Key) -> DecodingError {
        let reason = "no member \"\(key.stringValue)\""
        return .keyNotFound(key, .init(codingPath: codingPath, debugDescription: reason))
    }

    /// Returns a member whose value is not `null`.
    private func present(_ key: Key) -> JSONView? {
        guard let member = find(key), member.kind != .null else { return nil }
        return member
    }

    func decodeNil(forKey key: Key) throws -> Bool { try member(key).kind == .null }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try decoder.bool(member(key), key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try decoder.string(member(key), key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try decoder.double(member(key), key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try decoder.float(member(key), key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try decoder.integer(member(key), key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try decoder.integer(member(key), key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try decoder.integer(member(key), key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try decoder.integer(member(key), key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try decoder.integer(member(key), key) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try decoder.integer(member(key), key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try decoder.integer(member(key), key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try decoder.integer(member(key), key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try decoder.integer(member(key), key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try decoder.integer(member(key), key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try decoder.integer(member(key), key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try decoder.integer(member(key), key) }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try decoder.value(type, member(key), key)
    }

    // Searches the member once. The defaults, which apply to the other types, search it three times.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try present(key).map { try decoder.bool($0, key) }
    }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try present(key).map { try decoder.string($0, key) }
    }

    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try present(key).map { try decoder.double($0, key) }
    }

    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try present(key).map { try decoder.integer($0, key) }
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try present(key).map { try decoder.value(type, $0, key) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try decoder.decoder(of: member(key), key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder.decoder(of: member(key), key).unkeyedContainer()
    }

    func superDecoder() -> any Decoder { decoder(ofBase: JSONKey.base) }
    func superDecoder(forKey key: Key) -> any Decoder { decoder(ofBase: key) }

    private func decoder(ofBase key: any CodingKey) -> any Decoder {
        decoder.decoder(of: decoder.member(named: key.stringValue), key)
    }
}

/// The elements of a JSON array.
struct JSONUnkeyedDecodingContainer: UnkeyedDecodingContainer {
    let decoder: JSONValueDecoder
    let array: JSONView
    private var rest: JSONView.Elements
    private(set) var currentIndex = 0

    init(decoder: JSONValueDecoder, array: JSONView) {
        self.decoder = decoder
        self.array = array
        rest = array.elements
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { array.childCount }
    var isAtEnd: Bool { rest.isEmpty }

    /// Decodes the next element, and goes on to the one behind it unless this fails.
    private mutating func next<Value>(
        _ type: Any.Type,
        _ decode: (JSONValueDecoder, JSONView, JSONKey) throws -> Value
    ) throws -> Value {
        var behind = rest
        guard let element = behind.next() else {
            let path = decoder.path(JSONKey.index(currentIndex))
            throw DecodingError.valueNotFound(type, .init(codingPath: path, debugDescription: "no more elements"))
        }
        let value = try decode(decoder, element, JSONKey.index(currentIndex))
        rest = behind
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        var behind = rest
        guard behind.next()?.kind == .null else {
            // Throws at the end.
            if isAtEnd { try next(Never.self) { _, _, _ in } }
            return false
        }
        rest = behind
        currentIndex += 1
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try next(type) { try $0.bool($1, $2) } }
    mutating func decode(_ type: String.Type) throws -> String { try next(type) { try $0.string($1, $2) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try next(type) { try $0.double($1, $2) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try next(type) { try $0.float($1, $2) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try next(type) { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try next(type) { try $0.integer($1, $2) } }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try next(type) { try $0.value(type, $1, $2) }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try next(KeyedDecodingContainer<NestedKey>.self) { try $0.decoder(of: $1, $2).container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next((any UnkeyedDecodingContainer).self) { try $0.decoder(of: $1, $2).unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder {
        try next((any Decoder).self) { $0.decoder(of: $1, $2) }
    }
}
