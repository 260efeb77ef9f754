/// Encodes and decodes payloads as JSON.
public enum PayloadCoder {
    /// Encodes a value as a JSON text, members in the order of their names.
    ///
    /// - Throws: `EncodingError` if JSON can't represent a property, or the value is nested deeper than
    ///   ``JSONDocument/maximumDepth``.
    public static func encode<Value: Encodable>(_ value: Value) throws -> String {
        String(decoding: try encodeBytes(value), as: UTF8.self)
    }

    /// Decodes a value from a JSON text.
    ///
    /// - Throws: `DecodingError` if the text is not JSON by RFC 8259 (no comma before a closing bracket, no byte order
    ///   mark), or does not contain such a value.
    public static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from json: String) throws -> Value {
        let document: JSONDocument
        do throws(JSONSyntaxError) {
            document = try JSONDocument(Array(json.utf8))
        } catch {
            let context = DecodingError.Context(
                codingPath: [],
                debugDescription: error.description,
                underlyingError: error
            )
            throw DecodingError.dataCorrupted(context)
        }
        return try decode(type, from: document.root)
    }

    /// Encodes a value as the UTF-8 bytes of a JSON text, like ``encode(_:)``.
    ///
    /// - Throws: as ``encode(_:)``
    public static func encodeBytes<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        try JSONDocument(encoding: value).bytes
    }

    /// Decodes a value from its place in a checked text.
    ///
    /// - Throws: `DecodingError` if the place does not contain such a value.
    public static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from json: JSONView) throws -> Value {
        try JSONValueDecoder(json).decode(type)
    }

    /// Decodes an object, with its specific class, from its place in a checked text.
    static func object(_ json: JSONView) throws -> CoatyObject {
        try decode(AnyCoatyObjectDecodable.self, from: json).object
    }
}

extension CoatyObject {
    /// The object as on the wire, for logs and debugging.
    public var json: String {
        get throws { try PayloadCoder.encode(self) }
    }
}
