extension Decoder {
    /// Decodes an object, and returns its members that its type does not know: neither looks up nor encodes.
    ///
    /// - Parameter decode: decodes the object from the given decoder.
    func unknownProperties<Object: Encodable>(
        _ decode: (any Decoder) throws -> Object
    ) throws -> (object: Object, unknown: [String: AnyCodable]) {
        let recording = (self as? JSONValueDecoder)?.recording()
        let object = try decode(recording ?? self)
        let candidates = try recording?.unread ?? allProperties()
        guard !candidates.isEmpty else { return (object, [:]) }
        let encoded = try? JSONDocument(encoding: object).root
        return (object, candidates.filter { encoded?.member(named: $0.key) == nil })
    }

    /// Returns all members except those of all objects, from a decoder that does not record what is looked up.
    private func allProperties() throws -> [String: AnyCodable] {
        let container = try container(keyedBy: JSONKey.self)
        var properties: [String: AnyCodable] = [:]
        for key in container.allKeys where !ObjectCore.propertyNames.contains(key.stringValue) {
            properties[key.stringValue] = try container.decode(AnyCodable.self, forKey: key)
        }
        return properties
    }
}
