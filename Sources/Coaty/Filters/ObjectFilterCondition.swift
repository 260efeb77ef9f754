/// A condition on an object, or on several named objects: the condition language of filters and rules.
///
/// In JSON, `[property, [operator, operand…]]`, `{"and": […]}`, `{"or": […]}` or `{"not": …}`. Operators are numbers or
/// names; an operand may be `{"property": …}`. Filters on the wire support only a part of it: see ``ObjectFilter``.
///
/// ```swift
/// .and([.property("status", .equals("on")), .property(["labels", "com.example.floor"], .between(6, 8))])
/// ```
public indirect enum ObjectFilterCondition: Sendable, Hashable {
    /// The property's value matches the expression.
    case property(ObjectFilterProperty, ObjectFilterExpression)
    /// All conditions hold; true for an empty list.
    case and([ObjectFilterCondition])
    /// At least one condition holds; false for an empty list.
    case or([ObjectFilterCondition])
    /// The condition does not hold.
    case not(ObjectFilterCondition)

    /// Maximum nesting depth of `and`, `or` and `not`. JSON that is nested deeper is refused; a deeper condition is
    /// neither true nor false.
    public static let maximumDepth = 32

    /// Creates a condition that a property's value matches an expression.
    public init(property: ObjectFilterProperty, expression: ObjectFilterExpression) {
        self = .property(property, expression)
    }

    /// Decodes a condition on one property.
    private init(leaf view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        let parts = Array(view.elements.prefix(3))
        guard parts.count == 2 else {
            guard dialect != .tree else { throw .invalid(view, Self.expected) }
            throw .invalid(view, "must be [property, [operator, operand…]]: filters on the wire can't be nested deeper")
        }
        self = .property(try ObjectFilterProperty(parts[0]), try ObjectFilterExpression(parts[1], dialect))
    }

    /// Decodes a condition tree, with operator numbers or names.
    ///
    /// - Throws: ``PayloadError`` with the place in the view's document.
    public init(_ view: JSONView) throws(PayloadError) {
        try self.init(tree: view, depth: 0)
    }

    private init(tree view: JSONView, depth: Int) throws(PayloadError) {
        guard view.kind == .object else {
            try self.init(leaf: view, .tree)
            return
        }
        guard depth < Self.maximumDepth else { throw .invalid(view, "is nested deeper than \(Self.maximumDepth)") }
        if let conditions = view["conditions"] { throw Self.refusal(ofFilter: view, with: conditions) }
        var members = view.members
        guard let (key, value) = members.next(), members.next() == nil else {
            throw .invalid(view, Self.expected)
        }
        switch key.string {
        case "not": self = .not(try Self(tree: value, depth: depth + 1))
        case "and":
            self = .and(try Self.list(value) { view throws(PayloadError) in try Self(tree: view, depth: depth + 1) })
        case "or":
            self = .or(try Self.list(value) { view throws(PayloadError) in try Self(tree: view, depth: depth + 1) })
        default: throw .invalid(view, Self.expected)
        }
    }

    private static let expected = "must be [property, [operator, operand…]], or have one of and, or, not"

    /// Returns the error for an object filter in place of a condition, with the condition in it if there is a valid
    /// one.
    private static func refusal(ofFilter filter: JSONView, with conditions: JSONView) -> PayloadError {
        let reason = "must be a condition, not an object filter with conditions"
        guard (try? Self(conditions)) != nil, let text = conditions.shortText else { return .invalid(filter, reason) }
        return .invalid(filter, "\(reason): use \(text)")
    }

    /// Decodes the conditions of a filter; nil if there are none. Content that the wire format would silently ignore is
    /// refused if a person wrote it, because otherwise the filter would match everything.
    static func carried(_ view: JSONView?, _ dialect: FilterDialect) throws(PayloadError) -> Self? {
        guard let view else { return nil }
        guard view.kind == .object else { return try Self(leaf: view, dialect) }
        if dialect == .person {
            if let not = view["not"] { throw .invalid(not, "the wire carries no not") }
            try view.checkMembers(["and", "or"])
        }
        switch (view["and"], view["or"]) {
        case (nil, nil):
            if dialect == .person { throw .invalid(view, "must have one of and, or") }
            return nil
        case (let list?, nil): return .and(try leaves(list))
        case (nil, let list?): return .or(try leaves(list))
        case (_?, let list?): throw .invalid(list, "must not be combined with and")
        }
        func leaves(_ view: JSONView) throws(PayloadError) -> [Self] {
            try list(view) { view throws(PayloadError) in try Self(leaf: view, dialect) }
        }
    }

    private static func list(
        _ view: JSONView,
        _ read: (JSONView) throws(PayloadError) -> Self
    ) throws(PayloadError) -> [Self] {
        guard view.kind == .array else { throw .invalid(view, "must be an array") }
        var conditions: [Self] = []
        for element in view.elements { conditions.append(try read(element)) }
        return conditions
    }

    /// - Throws: ``PayloadError`` if the wire format of a filter can't represent the condition; the pointer is that of
    ///   the filter.
    func checkCarried() throws(PayloadError) {
        switch self {
        case .property: try checkLeaf("/conditions")
        case .and(let list):
            for (index, condition) in list.enumerated() { try condition.checkLeaf("/conditions/and/\(index)") }
        case .or(let list):
            for (index, condition) in list.enumerated() { try condition.checkLeaf("/conditions/or/\(index)") }
        case .not: throw .invalid(pointer: "/conditions/not", reason: "the wire carries no not")
        }
    }

    private func checkLeaf(_ pointer: String) throws(PayloadError) {
        guard case .property(let property, let expression) = self else {
            throw .invalid(pointer: pointer, reason: "the wire carries no nested conditions")
        }
        if property.isEmptyPath { throw .invalid(pointer: pointer + "/0", reason: "must not be empty") }
        for (index, operand) in expression.operands.enumerated() {
            guard case .value = operand else {
                throw .invalid(
                    pointer: "\(pointer)/1/\(index + 1)",
                    reason: "the wire carries no operand that is another property"
                )
            }
        }
    }

    func json(_ dialect: FilterDialect, operators: OperatorSpelling = .numbers) -> AnyCodable {
        switch self {
        case .property(let property, let expression): [property.json, expression.json(dialect, operators: operators)]
        case .and(let list): ["and": .array(list.map { $0.json(dialect, operators: operators) })]
        case .or(let list): ["or": .array(list.map { $0.json(dialect, operators: operators) })]
        case .not(let condition): ["not": condition.json(dialect, operators: operators)]
        }
    }
}

extension ObjectFilterCondition: Codable {
    /// Decodes a condition, with operator numbers or names.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view) }
    }

    /// Encodes the condition, with operator numbers.
    public func encode(to encoder: any Encoder) throws {
        try json(.tree).encode(to: encoder)
    }
}

/// The author of a filter's JSON, which determines its allowed content.
enum FilterDialect {
    /// An agent: operators are numbers, with at most one level of `and` or `or`.
    case wire
    /// A person: operators may be names, and content that would be silently ignored is refused.
    case person
    /// A person, for local use only: conditions may be nested, operands may be other properties.
    case tree
}

/// The notation of a filter's operators.
enum OperatorSpelling {
    case numbers, names
}

extension Decoder {
    /// Decodes via a checked JSON text, so that filters have only one parser, whose errors contain the place. The text
    /// is that of the filter only: the place is searched from its start, and an application may catch many errors.
    func decodeChecked<Value>(_ read: (JSONView) throws(PayloadError) -> Value) throws -> Value {
        let document =
            if let json = (self as? JSONValueDecoder)?.json {
                try JSONDocument(Array(json.bytes))
            } else {
                try JSONDocument(encoding: AnyCodable(from: self))
            }
        do {
            return try read(document.root)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: codingPath, debugDescription: error.description, underlyingError: error)
            )
        }
    }
}
