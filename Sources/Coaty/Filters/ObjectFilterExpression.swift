/// The comparison of a property's value in a filter. Raw values as on the wire.
///
/// If an operator does not support the types of the value and its operands, neither it nor its opposite holds. The reference
/// implementation converts them as JavaScript does, so that two filters differ there: -0.75 is `NotBetween` `"%"` and `""`, and
/// `{}` contains `[]`. This is not followed: results of such conversions surprise their users, and a filter that protects data
/// must not hold by accident.
public enum ObjectFilterOperator: Int, Sendable, CaseIterable {
    case LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, Between, NotBetween, Like, Equals, NotEquals
    case Exists, NotExists, Contains, NotContains, In, NotIn

    private static let names = Dictionary(uniqueKeysWithValues: allCases.map { ("\($0)", $0) })

    init(_ view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        if let number = view.number, let known = Int(exactly: number).flatMap(Self.init(rawValue:)) {
            self = known
        } else if dialect != .wire, let known = view.string.flatMap(Self.init(name:)) {
            self = known
        } else {
            let numbers = "a number from 0 to \(Self.NotIn.rawValue)"
            guard dialect != .wire else { throw .invalid(view, "must be an operator, \(numbers)") }
            let names = Self.allCases.map { "\($0)" }.joined(separator: ", ")
            throw .invalid(view, "must be an operator: \(names), or \(numbers)")
        }
    }

    /// Returns the operator with a name; nil if there is none.
    init?(name: String) {
        guard let known = Self.names[name] else { return nil }
        self = known
    }

    fileprivate var operandCount: Int {
        switch self {
        case .Exists, .NotExists: 0
        case .Between, .NotBetween: 2
        default: 1
        }
    }
}

extension ObjectFilterOperator: Codable {
    /// Decodes an operator's number, or its name (`"Equals"`).
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view, .tree) }
    }

    /// Encodes the operator's number.
    public func encode(to encoder: any Encoder) throws {
        try rawValue.encode(to: encoder)
    }
}

/// An operand that a property's value is compared with.
public enum ObjectFilterOperand: Sendable, Hashable {
    /// A value.
    case value(AnyCodable)
    /// The value of another property. Not supported on the wire.
    case property(ObjectFilterProperty)

    /// Decodes an operand. A tree uses `{"property": …}` for another property, and `{"value": …}` for a value that
    /// looks like one of the two.
    init(_ view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        var members = view.members
        guard dialect == .tree, let (_, operand) = members.next(), members.next() == nil else {
            self = .value(AnyCodable(view))
            return
        }
        if view["property"] != nil {
            self = .property(try ObjectFilterProperty(operand))
        } else {
            self = .value(AnyCodable(view["value"] != nil ? operand : view))
        }
    }

    fileprivate func json(_ dialect: FilterDialect) -> AnyCodable {
        switch self {
        case .property(let property): return ["property": property.json]
        case .value(let value):
            guard dialect == .tree, case .object(let members) = value, members.count == 1,
                members["property"] != nil || members["value"] != nil
            else { return value }
            return ["value": value]
        }
    }
}

/// An operator with its operands: `[operator, operand…]` in JSON.
///
/// ```swift
/// .between(6, 8)
/// .init(filterOperator: .Equals, op1: .property("context.floor"))
/// ```
public struct ObjectFilterExpression: Sendable, Hashable {
    /// The operator.
    public let filterOperator: ObjectFilterOperator
    /// The first operand.
    public let firstOperand: ObjectFilterOperand?
    /// The second operand of `Between` and `NotBetween`.
    public let secondOperand: ObjectFilterOperand?

    /// Creates an expression. The second operand is ignored without the first.
    public init(
        filterOperator: ObjectFilterOperator,
        op1: ObjectFilterOperand? = nil,
        op2: ObjectFilterOperand? = nil
    ) {
        self.filterOperator = filterOperator
        firstOperand = op1
        secondOperand = op1 == nil ? nil : op2
    }

    /// Decodes an expression. On the wire, any number of operands is allowed, as in the reference implementation, which
    /// reads a missing operand as undefined.
    init(_ view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        let parts = Array(view.elements.prefix(4))
        guard let first = parts.first else { throw .invalid(view, "must be [operator, operand…]") }
        let filterOperator = try ObjectFilterOperator(first, dialect)
        guard dialect == .wire || parts.count == 1 + filterOperator.operandCount else {
            let count = filterOperator.operandCount
            let operands = count == 0 ? "no operand" : count == 1 ? "one operand" : "two operands"
            throw .invalid(view, "must have \(operands) after \(filterOperator)")
        }
        self.init(
            filterOperator: filterOperator,
            op1: parts.count > 1 ? try ObjectFilterOperand(parts[1], dialect) : nil,
            op2: parts.count > 2 ? try ObjectFilterOperand(parts[2], dialect) : nil
        )
    }

    var operands: [ObjectFilterOperand] { [firstOperand, secondOperand].compactMap(\.self) }

    func json(_ dialect: FilterDialect, operators: OperatorSpelling = .numbers) -> AnyCodable {
        let first: AnyCodable =
            switch operators {
            case .numbers: AnyCodable(filterOperator.rawValue)
            case .names: AnyCodable("\(filterOperator)")
            }
        return .array([first] + operands.map { $0.json(dialect) })
    }
}

extension ObjectFilterExpression: Codable {
    /// Decodes `[operator, operand…]`, with an operator number or name.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view, .tree) }
    }

    /// Encodes `[operator, operand…]`, with an operator number.
    public func encode(to encoder: any Encoder) throws {
        try json(.tree).encode(to: encoder)
    }
}

/// The filter operations.
extension ObjectFilterExpression {
    private init(_ filterOperator: ObjectFilterOperator, _ op1: AnyCodable, _ op2: AnyCodable? = nil) {
        self.init(filterOperator: filterOperator, op1: .value(op1), op2: op2.map(ObjectFilterOperand.value))
    }

    /// Less than a number or a string.
    public static func lessThan(_ value: AnyCodable) -> Self { Self(.LessThan, value) }

    /// Less than or equal to a number or a string.
    public static func lessThanOrEqual(_ value: AnyCodable) -> Self { Self(.LessThanOrEqual, value) }

    /// Greater than a number or a string.
    public static func greaterThan(_ value: AnyCodable) -> Self { Self(.GreaterThan, value) }

    /// Greater than or equal to a number or a string.
    public static func greaterThanOrEqual(_ value: AnyCodable) -> Self { Self(.GreaterThanOrEqual, value) }

    /// Between two numbers or strings, inclusive, in any order.
    public static func between(_ value1: AnyCodable, _ value2: AnyCodable) -> Self { Self(.Between, value1, value2) }

    /// Outside the range of two numbers or strings, in any order.
    public static func notBetween(_ value1: AnyCodable, _ value2: AnyCodable) -> Self {
        Self(.NotBetween, value1, value2)
    }

    /// A string that matches a pattern: `_` is any character (UTF-16 code unit), `%` is any number of them, neither
    /// matches a line break; a backslash escapes the next character. A pattern of more than 1024 units matches nothing.
    public static func like(_ pattern: String) -> Self { Self(.Like, .string(pattern)) }

    /// Deeply equal to a value.
    public static func equals(_ value: AnyCodable) -> Self { Self(.Equals, value) }

    /// Present, and not deeply equal to a value.
    public static func notEquals(_ value: AnyCodable) -> Self { Self(.NotEquals, value) }

    /// Present, including `null`.
    public static func exists() -> Self { Self(filterOperator: .Exists) }

    /// Absent.
    public static func notExists() -> Self { Self(filterOperator: .NotExists) }

    /// An object with these members, or an array with these elements (or with this element, if it is neither), on all
    /// levels; or the same value.
    public static func contains(_ values: AnyCodable) -> Self { Self(.Contains, values) }

    /// Present, but does not contain the values.
    public static func notContains(_ values: AnyCodable) -> Self { Self(.NotContains, values) }

    /// Deeply equal to one of the values.
    public static func `in`(_ values: [AnyCodable]) -> Self { Self(.In, .array(values)) }

    /// Present, but not deeply equal to any of the values.
    public static func notIn(_ values: [AnyCodable]) -> Self { Self(.NotIn, .array(values)) }
}
