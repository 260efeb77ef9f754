/// A type of properties on the wire.
protocol WireValue {
    /// The requirement on a JSON value.
    static var rule: ValueRule { get }
    /// Any value, for ``PropertyReader``.
    static var placeholder: Self? { get throws }
}

/// A struct whose properties are those of a JSON object.
protocol WireStructure: WireValue, Decodable {
    /// Rules that the types of the properties do not express; each replaces the rule of the property.
    static var wireExceptions: [PropertyRule] { get }
}

extension WireStructure {
    static var wireExceptions: [PropertyRule] { [] }
    static var rule: ValueRule { .object(PropertyReader.properties(of: Self.self).replaced(by: wireExceptions)) }
    static var placeholder: Self? { get throws { try Self(from: PropertyReader()) } }
}

extension String: WireValue {
    static let rule = ValueRule.string
    static let placeholder: Self? = ""
}

extension Bool: WireValue {
    static let rule = ValueRule.bool
    static let placeholder: Self? = false
}

extension Double: WireValue {
    static let rule = ValueRule.number
    static let placeholder: Self? = 0.0
}

extension CoatyUUID: WireValue {
    static let rule = ValueRule.nonEmptyString
    static let placeholder: Self? = Self(wire: "")
}

extension CoreType: WireValue {
    static let rule = ValueRule.coreType
    static let placeholder: Self? = .CoatyObject
}

extension AnyCodable: WireValue {
    static let rule = ValueRule.any
    static let placeholder: Self? = .null
}

extension Array: WireValue where Element: WireValue {
    /// The reference implementation accepts no empty string in an array.
    static var rule: ValueRule { Element.self == String.self ? .nonEmptyStrings : .elements(Element.rule) }
    static var placeholder: Self? { [] }
}

extension Dictionary: WireValue where Key == String, Value == AnyCodable {
    static var rule: ValueRule { .object([]) }
    static var placeholder: Self? { [:] }
}

extension AnyCoatyObjectDecodable: WireValue {
    static let rule = ValueRule.coatyObject(nil)
    static var placeholder: Self? { get throws { Self(object: try CoatyObject(from: PropertyReader())) } }
}

extension WireValue where Self: RawRepresentable & CaseIterable, RawValue == Int {
    static var rule: ValueRule { .oneOf(allCases.map(\.rawValue)) }
    static var placeholder: Self? { allCases.first }
}
