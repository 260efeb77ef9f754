import Foundation

/// Encodes and decodes payloads as JSON.
public enum PayloadCoder {
    /// The JSON text of a value.
    ///
    /// - Throws: `EncodingError` where a property holds what JSON can't say.
    public static func encode<Value: Encodable>(_ value: Value) throws -> String {
        String(decoding: try encodeBytes(value), as: UTF8.self)
    }

    /// The value of a JSON text.
    ///
    /// - Throws: `DecodingError` where the text is no such value.
    public static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from json: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(json.utf8))
    }

    static func encodeBytes<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        return [UInt8](try encoder.encode(value))
    }

    /// Decodes an object, of its own class, from its place in a checked text.
    static func object(_ view: JSONView) throws -> CoatyObject {
        // Foundation takes the first of duplicate keys, where the last counts, and refuses lone surrogates, which a checked
        // text may spell: such a text is written anew.
        if view.duplicateMember == nil {
            do {
                return try uniqueKeyedObject(view)
            } catch is DecodingError {
                // Falls through.
            }
        }
        return try uniqueKeyedObject(JSONDocument(encodeBytes(AnyCodable(view))).root)
    }

    /// Decodes an object that has no key twice, also within.
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
    /// What the decoder is at, in the checked text that is decoded: any JSON value is had from it at once, where decoding
    /// one value in the other costs more with each level. nil where something else is decoded.
    var json: JSONView? {
        guard let root = CodingUserInfoKey.json.flatMap({ userInfo[$0] as? JSONView }) else { return nil }
        return root.value(at: codingPath.lazy.map { key in key.intValue.map(String.init) ?? key.stringValue })
    }
}

extension CoatyObject {
    /// The object as it stands on the wire, for logs and debugging.
    public var json: String {
        get throws { try PayloadCoder.encode(self) }
    }
}
