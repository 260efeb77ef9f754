/// The members of an object that is encoded.
struct JSONKeyedEncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let box: JSONTreeBox
    /// The index of the object.
    let object: Int

    var codingPath: [any CodingKey] { box.tree.path(to: object) }

    private func member(_ key: any CodingKey) -> Int { box.tree.appendMember(key.stringValue, to: object) }

    func encodeNil(forKey key: Key) { box.tree.setNull(at: member(key)) }
    func encode(_ value: Bool, forKey key: Key) { box.tree.set(value, at: member(key)) }
    func encode(_ value: String, forKey key: Key) { box.tree.set(value, at: member(key)) }
    func encode(_ value: Double, forKey key: Key) throws {
        try box.setPart(member(key)) { try box.tree.set(floatingPoint: value, at: $0) }
    }
    func encode(_ value: Float, forKey key: Key) throws {
        try box.setPart(member(key)) { try box.tree.set(floatingPoint: value, at: $0) }
    }
    func encode(_ value: Int, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: Int8, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: Int16, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: Int32, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: Int64, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: Int128, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: UInt, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: UInt8, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: UInt16, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: UInt32, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: UInt64, forKey key: Key) { box.tree.set(number: value, at: member(key)) }
    func encode(_ value: UInt128, forKey key: Key) { box.tree.set(number: value, at: member(key)) }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try box.setPart(member(key)) { try box.set(value: value, at: $0) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        nested(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nested(key).unkeyedContainer() }

    func superEncoder() -> any Encoder { JSONValueEncoder(box: box, index: member(JSONKey.base)) }
    func superEncoder(forKey key: Key) -> any Encoder { JSONValueEncoder(box: box, index: member(key)) }

    private func nested(_ key: Key) -> JSONValueEncoder {
        let index = member(key)
        box.tree.markNested(index)
        return JSONValueEncoder(box: box, index: index)
    }
}

/// The elements of an array that is encoded.
struct JSONUnkeyedEncodingContainer: UnkeyedEncodingContainer {
    let box: JSONTreeBox
    /// The index of the array.
    let array: Int

    var codingPath: [any CodingKey] { box.tree.path(to: array) }
    var count: Int { Int(box.tree.values[array].count) }

    private func element() -> Int { box.tree.appendElement(to: array) }

    func encodeNil() { box.tree.setNull(at: element()) }
    func encode(_ value: Bool) { box.tree.set(value, at: element()) }
    func encode(_ value: String) { box.tree.set(value, at: element()) }
    func encode(_ value: Double) throws {
        try box.setPart(element()) { try box.tree.set(floatingPoint: value, at: $0) }
    }
    func encode(_ value: Float) throws {
        try box.setPart(element()) { try box.tree.set(floatingPoint: value, at: $0) }
    }
    func encode(_ value: Int) { box.tree.set(number: value, at: element()) }
    func encode(_ value: Int8) { box.tree.set(number: value, at: element()) }
    func encode(_ value: Int16) { box.tree.set(number: value, at: element()) }
    func encode(_ value: Int32) { box.tree.set(number: value, at: element()) }
    func encode(_ value: Int64) { box.tree.set(number: value, at: element()) }
    func encode(_ value: Int128) { box.tree.set(number: value, at: element()) }
    func encode(_ value: UInt) { box.tree.set(number: value, at: element()) }
    func encode(_ value: UInt8) { box.tree.set(number: value, at: element()) }
    func encode(_ value: UInt16) { box.tree.set(number: value, at: element()) }
    func encode(_ value: UInt32) { box.tree.set(number: value, at: element()) }
    func encode(_ value: UInt64) { box.tree.set(number: value, at: element()) }
    func encode(_ value: UInt128) { box.tree.set(number: value, at: element()) }
    func encode<Value: Encodable>(_ value: Value) throws {
        try box.setPart(element()) { try box.set(value: value, at: $0) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        JSONValueEncoder(box: box, index: element()).container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        JSONValueEncoder(box: box, index: element()).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { JSONValueEncoder(box: box, index: element()) }
}
