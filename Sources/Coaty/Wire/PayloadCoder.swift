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
        do {
            return try JSONDecoder().decode(AnyCoatyObjectDecodable.self, from: Data(view.bytes)).object
        } catch {
            // Foundation refuses lone surrogates, which the checked text may spell: try again with a repaired text.
            let repaired = try encodeBytes(AnyCodable(view))
            return try JSONDecoder().decode(AnyCoatyObjectDecodable.self, from: Data(repaired)).object
        }
    }
}

extension CoatyObject {
    /// The object as it stands on the wire, for logs and debugging.
    public var json: String {
        get throws { try PayloadCoder.encode(self) }
    }
}
