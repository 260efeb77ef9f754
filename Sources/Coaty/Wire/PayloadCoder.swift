import Foundation

/// Encodes and decodes payloads as JSON.
public enum PayloadCoder {
    /// Encodes a value as a JSON text.
    ///
    /// - Throws: `EncodingError` if JSON can't represent a property.
    public static func encode<Value: Encodable>(_ value: Value) throws -> String {
        String(decoding: try encodeBytes(value), as: UTF8.self)
    }

    /// Decodes a value from a JSON text.
    ///
    /// - Throws: `DecodingError` if the text does not contain such a value.
    public static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from json: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(json.utf8))
    }

    static func encodeBytes<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        return [UInt8](try encoder.encode(value))
    }

    /// Decodes an object, with its specific class, from its place in a checked text.
    static func object(_ view: JSONView) throws -> CoatyObject {
        // Foundation uses the first of duplicate keys, although the last one wins, and refuses lone surrogates, which a
        // checked text may contain: in these cases the text is written again.
        if view.duplicateMember == nil {
            do {
                return try uniqueKeyedObject(view)
            } catch is DecodingError {
                // Falls through.
            }
        }
        return try uniqueKeyedObject(JSONDocument(encodeBytes(AnyCodable(view))).root)
    }

    /// Decodes an object without duplicate keys on any level.
    static func uniqueKeyedObject(_ view: JSONView) throws -> CoatyObject {
        let decoder = JSONDecoder()
        if let key = CodingUserInfoKey.json { decoder.userInfo[key] = view }
        return try decoder.decode(AnyCoatyObjectDecodable.self, from: Data(view.bytes)).object
    }
}

extension CodingUserInfoKey {
    /// The checked text that is decoded.
    fileprivate static let json = CodingUserInfoKey(rawValue: "coaty.json")
}

extension Decoder {
    /// The decoder's current value in the checked text. Any JSON value can be read from it directly, whereas nested
    /// decoding becomes slower with each level. nil if something else is decoded.
    var json: JSONView? {
        guard let root = CodingUserInfoKey.json.flatMap({ userInfo[$0] as? JSONView }) else { return nil }
        return root.value(at: codingPath.lazy.map { key in key.intValue.map(String.init) ?? key.stringValue })
    }
}

extension CoatyObject {
    /// The object as on the wire, for logs and debugging.
    public var json: String {
        get throws { try PayloadCoder.encode(self) }
    }
}
