/// Reads the properties of a type, and their rules on the wire, from the calls of its `init(from:)`.
///
/// A property that is decoded only if it is present is optional. Its rule follows from its type. Each call gets a
/// placeholder, so `init(from:)` must not depend on values.
struct PropertyReader: Decoder {
    /// The properties that were read so far. Only the call of ``properties(of:)`` uses it.
    private final class Properties {
        var rules: [PropertyRule] = []
        var optionalNames: Set<String> = []
    }

    private let properties = Properties()
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    /// Returns the properties of a type in the order in which they are decoded.
    static func properties<Object: Decodable>(of type: Object.Type) -> [PropertyRule] {
        let reader = PropertyReader()
        do {
            _ = try type.init(from: reader)
        } catch {
            preconditionFailure("\(type) has a property without a rule: \(error)")
        }
        return reader.properties.rules
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Container(properties: properties))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Unsupported(type: "an array") }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Unsupported(type: "a value") }

    /// The error for a type that is no ``WireValue``.
    private struct Unsupported: Error {
        let type: String
    }

    private struct Container<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let properties: Properties
        let codingPath: [any CodingKey] = []
        let allKeys: [Key] = []

        /// Called only for properties that may be absent.
        func contains(_ key: Key) -> Bool {
            properties.optionalNames.insert(key.stringValue)
            return true
        }

        func decodeNil(forKey key: Key) -> Bool { false }

        /// Also satisfies the requirements for single types.
        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            guard let wireType = type as? any WireValue.Type, let placeholder = try wireType.placeholder as? Value
            else {
                throw Unsupported(type: "\(type)")
            }
            let isRequired = !properties.optionalNames.contains(key.stringValue)
            properties.rules.append(PropertyRule(name: key.stringValue, isRequired: isRequired, rule: wireType.rule))
            return placeholder
        }

        func nestedContainer<NestedKey: CodingKey>(
            keyedBy type: NestedKey.Type,
            forKey key: Key
        ) throws -> KeyedDecodingContainer<NestedKey> { throw Unsupported(type: "a nested container") }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw Unsupported(type: "a nested container")
        }

        func superDecoder() throws -> any Decoder { throw Unsupported(type: "a super decoder") }

        func superDecoder(forKey key: Key) throws -> any Decoder { throw Unsupported(type: "a super decoder") }
    }
}
