import Foundation

/// Encodes values into a ``JSONTree``.
///
/// Represents values as Foundation's `JSONEncoder` does: data as Base64, dates as numbers, URLs and decimal numbers as
/// such. Numbers that are not finite are refused.
struct JSONValueEncoder: Encoder {
    let box: JSONTreeBox
    /// The index of the value.
    let index: Int

    var codingPath: [any CodingKey] { box.tree.path(to: index) }

    /// Empty.
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        box.tree.open(.object, at: index)
        return KeyedEncodingContainer(JSONKeyedEncodingContainer(box: box, object: index))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        box.tree.open(.array, at: index)
        return JSONUnkeyedEncodingContainer(box: box, array: index)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension JSONTreeBox {
    /// Encodes a value of any type.
    func set<Value: Encodable>(value: Value, at index: Int) throws {
        if Value.self == Data.self, let data = value as? Data {
            tree.set(data.base64EncodedString(), at: index)
        } else if Value.self == URL.self, let url = value as? URL {
            tree.set(url.absoluteString, at: index)
        } else if Value.self == Decimal.self, let decimal = value as? Decimal {
            guard decimal.isFinite else { throw tree.notFinite(decimal, at: index) }
            tree.set(number: decimal, at: index)
        } else {
            let before = tree.values[index]
            do {
                try value.encode(to: JSONValueEncoder(box: self, index: index))
            } catch {
                tree.restore(before, at: index)
                throw error
            }
        }
    }

    /// Encodes a part of an array or object. If this fails, the array or object can still be encoded without it.
    func setPart(_ index: Int, _ set: (Int) throws -> Void) throws {
        do {
            try set(index)
        } catch {
            tree.discard(index)
            throw error
        }
    }
}

extension JSONDocument {
    /// Encodes a value, members in the order of their names.
    ///
    /// - Throws: `EncodingError` if JSON can't represent a property, or the value encodes nothing or is nested too
    ///   deep.
    public init<Value: Encodable>(encoding value: Value) throws {
        let box = JSONTreeBox()
        try box.set(value: value, at: 0)
        func failure(_ reason: String, _ cause: JSONSyntaxError? = nil) -> EncodingError {
            .invalidValue(value, .init(codingPath: [], debugDescription: reason, underlyingError: cause))
        }
        if let (index, first, second) = box.tree.conflict {
            let context = EncodingError.Context(
                codingPath: box.tree.path(to: index),
                debugDescription: "encoded as both \(first) and \(second)"
            )
            throw EncodingError.invalidValue(value, context)
        }
        guard box.tree.values[0].kind != .unset else { throw failure("\(Value.self) encodes nothing") }
        var writer = JSONTreeWriter(box.tree)
        do throws(JSONSyntaxError) {
            try writer.write()
        } catch {
            throw failure(error.description, error)
        }
        storage = Storage(writer.bytes, writer.nodes, wideBytes: writer.wideBytes)
    }
}

extension JSONValueEncoder: SingleValueEncodingContainer {
    func encodeNil() { box.tree.setNull(at: index) }
    func encode(_ value: Bool) { box.tree.set(value, at: index) }
    func encode(_ value: String) { box.tree.set(value, at: index) }
    func encode(_ value: Double) throws { try box.tree.set(floatingPoint: value, at: index) }
    func encode(_ value: Float) throws { try box.tree.set(floatingPoint: value, at: index) }
    func encode(_ value: Int) { box.tree.set(number: value, at: index) }
    func encode(_ value: Int8) { box.tree.set(number: value, at: index) }
    func encode(_ value: Int16) { box.tree.set(number: value, at: index) }
    func encode(_ value: Int32) { box.tree.set(number: value, at: index) }
    func encode(_ value: Int64) { box.tree.set(number: value, at: index) }
    func encode(_ value: Int128) { box.tree.set(number: value, at: index) }
    func encode(_ value: UInt) { box.tree.set(number: value, at: index) }
    func encode(_ value: UInt8) { box.tree.set(number: value, at: index) }
    func encode(_ value: UInt16) { box.tree.set(number: value, at: index) }
    func encode(_ value: UInt32) { box.tree.set(number: value, at: index) }
    func encode(_ value: UInt64) { box.tree.set(number: value, at: index) }
    func encode(_ value: UInt128) { box.tree.set(number: value, at: index) }
    func encode<Value: Encodable>(_ value: Value) throws { try box.set(value: value, at: index) }
}
