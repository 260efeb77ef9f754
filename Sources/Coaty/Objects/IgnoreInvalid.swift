/// A property that other agents do not check: a value of another type is ignored, not an error of the whole object.
@propertyWrapper
public struct IgnoreInvalid<Value: Codable & Sendable>: Codable, Sendable {
    /// The value; nil if it is absent or of another type.
    public var wrappedValue: Value?

    /// Creates the property.
    public init(wrappedValue: Value? = nil) {
        self.wrappedValue = wrappedValue
    }

    /// Decodes a present value.
    public init(from decoder: any Decoder) throws {
        wrappedValue = try? decoder.singleValueContainer().decode(Value.self)
    }

    /// Encodes the value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}

// Synthesized coding calls these, so that an absent value is an absent key.

extension KeyedDecodingContainer {
    /// Decodes a value that may be absent or of another type.
    public func decode<Value>(_ type: IgnoreInvalid<Value>.Type, forKey key: Key) throws -> IgnoreInvalid<Value> {
        IgnoreInvalid(wrappedValue: try? decode(Value.self, forKey: key))
    }
}

extension KeyedEncodingContainer {
    /// Encodes a value if there is one.
    public mutating func encode<Value>(_ property: IgnoreInvalid<Value>, forKey key: Key) throws {
        try encodeIfPresent(property.wrappedValue, forKey: key)
    }
}

extension IgnoreInvalid: Equatable where Value: Equatable {}
extension IgnoreInvalid: Hashable where Value: Hashable {}
