/// Selects, orders and cuts the objects that answer a query.
///
/// On the wire `{conditions?, orderByProperties?, take?, skip?}`, where conditions are one condition, `{and: […]}` or
/// `{or: […]}`, and operators are numbers. Decoding also takes operators by name, and refuses members that are unknown.
///
/// ```swift
/// try ObjectFilter(conditions: .property("status", .equals("on")), take: 10)
/// ```
public struct ObjectFilter: Sendable, Hashable {
    /// What objects must be like; nil where all are wanted. Never more than the wire can carry.
    public let conditions: ObjectFilterCondition?
    /// What results are ordered by, first things first.
    public var orderByProperties: [OrderByProperty]?
    /// How many objects are wanted at most; 0 is all of them, as in the reference's in-memory database.
    public var take: Int?
    /// How many objects are left out before the first.
    public var skip: Int?

    /// A filter that all objects pass.
    public init(orderByProperties: [OrderByProperty]? = nil, take: Int? = nil, skip: Int? = nil) {
        conditions = nil
        self.orderByProperties = orderByProperties
        self.take = take
        self.skip = skip
    }

    /// A filter with a condition.
    ///
    /// - Throws: ``PayloadError`` where the wire can't carry the condition: it nests and, or and not, or has an operand that
    ///   is another property, or a property without a name. The pointer is that of the filter's JSON.
    public init(
        conditions: ObjectFilterCondition,
        orderByProperties: [OrderByProperty]? = nil,
        take: Int? = nil,
        skip: Int? = nil
    ) throws(PayloadError) {
        try conditions.checkCarried()
        self.conditions = conditions
        self.orderByProperties = orderByProperties
        self.take = take
        self.skip = skip
    }

    /// Reads a filter that came in, by the rules of the reference.
    init(_ view: JSONView) throws(PayloadError) {
        try self.init(view, .wire)
    }

    init(_ view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        try view.checkFilter(["conditions", "orderByProperties", "take", "skip"], dialect)
        conditions = try ObjectFilterCondition.carried(view["conditions"], dialect)
        if let list = view["orderByProperties"] {
            guard list.kind == .array else { throw .invalid(list, "must be an array") }
            var order: [OrderByProperty] = []
            for element in list.elements { order.append(try OrderByProperty(element)) }
            orderByProperties = order
        }
        take = try Self.count(view["take"])
        skip = try Self.count(view["skip"])
    }

    /// A fraction counts as the next whole number, as it does where the reference counts.
    private static func count(_ view: JSONView?) throws(PayloadError) -> Int? {
        guard let view else { return nil }
        guard let number = view.number else { throw .invalid(view, "must be a number") }
        return Int(exactly: number.rounded(.up)) ?? (number < 0 ? .min : .max)
    }
}

extension ObjectFilter: Codable {
    /// Decodes a filter that a person wrote: operators may be names.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view, .person) }
    }

    private enum Keys: String, CodingKey {
        case conditions, orderByProperties, take, skip
    }

    /// Encodes the wire's form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(conditions?.json(.wire), forKey: .conditions)
        try container.encodeIfPresent(orderByProperties, forKey: .orderByProperties)
        try container.encodeIfPresent(take, forKey: .take)
        try container.encodeIfPresent(skip, forKey: .skip)
    }
}

/// Says which context a remote call is meant for: `{conditions?}` on the wire, as in ``ObjectFilter``.
public struct ContextFilter: Sendable, Hashable {
    /// What the context must be like; nil where any will do. Never more than the wire can carry.
    public let conditions: ObjectFilterCondition?

    /// A filter that any context passes.
    public init() { conditions = nil }

    /// A filter with a condition.
    ///
    /// - Throws: ``PayloadError`` where the wire can't carry the condition, as ``ObjectFilter`` says.
    public init(conditions: ObjectFilterCondition) throws(PayloadError) {
        try conditions.checkCarried()
        self.conditions = conditions
    }

    /// Reads a filter that came in, by the rules of the reference.
    init(_ view: JSONView) throws(PayloadError) {
        try self.init(view, .wire)
    }

    init(_ view: JSONView, _ dialect: FilterDialect) throws(PayloadError) {
        try view.checkFilter(["conditions"], dialect)
        conditions = try ObjectFilterCondition.carried(view["conditions"], dialect)
    }
}

extension ContextFilter: Codable {
    /// Decodes a filter that a person wrote: operators may be names.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view, .person) }
    }

    private enum Keys: String, CodingKey {
        case conditions
    }

    /// Encodes the wire's form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(conditions?.json(.wire), forKey: .conditions)
    }
}

extension JSONView {
    /// Checks that this is an object, and that a person wrote none but the members of a filter.
    fileprivate func checkFilter(_ names: [String], _ dialect: FilterDialect) throws(PayloadError) {
        if dialect == .person, let text = shortText, (try? ObjectFilterCondition.carried(self, dialect)) != nil {
            throw .invalid(self, "must be an object filter, not a condition: use {\"conditions\":\(text)}")
        }
        guard kind == .object else { throw .invalid(self, "must be an object") }
        if dialect == .person { try checkMembers(names) }
    }

    /// Checks that an object has no members but these.
    func checkMembers(_ names: [String]) throws(PayloadError) {
        for (key, value) in members where !names.contains(where: { key.isString($0) }) {
            throw .invalid(value, "is unknown, must be one of \(names.joined(separator: ", "))")
        }
    }
}
