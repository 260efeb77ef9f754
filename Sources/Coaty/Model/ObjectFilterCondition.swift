/// What an object, or several named ones, must be like: the condition language of filters and rules.
///
/// In JSON `[property, [operator, operand…]]`, `{"and": […]}`, `{"or": […]}` or `{"not": …}`. Operators are numbers or names,
/// an operand may be `{"property": …}`. What a filter carries over the wire is less: see ``ObjectFilter``.
///
/// ```swift
/// .and([.property("status", .equals("on")), .property(["labels", "com.example.floor"], .between(6, 8))])
/// ```
public indirect enum ObjectFilterCondition: Sendable, Hashable {
    /// A property's value is as the expression says.
    case property(ObjectFilterProperty, ObjectFilterExpression)
    /// All hold. Holds where there is none.
    case and([ObjectFilterCondition])
    /// One holds at least. Does not hold where there is none.
    case or([ObjectFilterCondition])
    /// The condition does not hold.
    case not(ObjectFilterCondition)

    /// How deep and, or and not may be nested. JSON that is deeper is refused, and what is deeper is
    /// neither true nor false.
    public static let maximumDepth = 32

    /// A property's value is as the expression says.
    public init(property: ObjectFilterProperty, expression: ObjectFilterExpression) {
        self = .property(property, expression)
    }

    /// How many conditions on properties this consists of; an and or or without any counts as one.
    package var leafCount: Int {
        switch self {
        case .property: 1
        case .and(let list), .or(let list): list.isEmpty ? 1 : list.reduce(0) { $0 + $1.leafCount }
        case .not(let condition): condition.leafCount
        }
    }

    /// Reads one condition on a property.
    private init(leaf view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        let parts = Array(view.elements.prefix(3))
        guard parts.count == 2 else {
            guard dialect != .tree else { throw .invalid(view, Self.expected) }
            throw .invalid(view, "must be [property, [operator, operand…]], the wire carries no deeper nesting")
        }
        self = .property(try ObjectFilterProperty(parts[0]), try ObjectFilterExpression(parts[1], dialect))
    }

    /// Reads a tree, operators by their numbers or their names.
    ///
    /// - Throws: ``PayloadError`` with the place in the view's document.
    package init(_ view: JSONView) throws(PayloadError) {
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

    /// Returns the error for an object filter in place of a condition, with the condition in it if there is a valid one.
    private static func refusal(ofFilter filter: JSONView, with conditions: JSONView) -> PayloadError {
        let reason = "must be a condition, not an object filter with conditions"
        guard (try? Self(conditions)) != nil, let text = conditions.shortText else { return .invalid(filter, reason) }
        return .invalid(filter, "\(reason): use \(text)")
    }

    /// Reads what a filter has as its conditions; nil where there are none. What a person writes is refused where the wire
    /// would leave it out without a word: the filter would match everything.
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

    /// - Throws: ``PayloadError`` where a filter can't carry the condition over the wire; the pointer is that of the filter.
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
    /// Decodes a condition, operators by their numbers or their names.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view) }
    }

    /// Encodes the condition, operators as numbers.
    public func encode(to encoder: any Encoder) throws {
        try json(.tree).encode(to: encoder)
    }
}

/// Who wrote a filter's JSON, and what it may hold.
enum FilterDialect {
    /// An agent: operators are numbers, one level of and or or.
    case wire
    /// A person: operators may be names, and what would be left out without a word is refused.
    case person
    /// A person, and it stays here: conditions may be nested, operands may be other properties.
    case tree
}

/// How a filter's operators are written.
enum OperatorSpelling {
    case numbers, names
}

extension Decoder {
    /// Decodes through a check of JSON, so that there is one reading of filters and its errors say where.
    func decodeChecked<Value>(_ read: (JSONView) throws(PayloadError) -> Value) throws -> Value {
        let document = try JSONDocument(PayloadCoder.encodeBytes(AnyCodable(from: self)))
        do {
            return try read(document.root)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: codingPath, debugDescription: error.description, underlyingError: error)
            )
        }
    }
}
