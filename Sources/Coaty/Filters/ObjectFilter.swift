/// A filter that selects, orders and limits the objects that answer a query.
///
/// On the wire, `{conditions?, orderByProperties?, take?, skip?}`, where `conditions` is one condition, `{and: […]}` or
/// `{or: […]}`, and operators are numbers. Decoding also accepts operator names, and refuses unknown members.
///
/// ```swift
/// try ObjectFilter(conditions: .property("status", .equals("on")), take: 10)
/// ```
public struct ObjectFilter: Sendable, Hashable {
    /// The condition on objects; nil selects all. It can always be represented on the wire.
    public let conditions: ObjectFilterCondition?
    /// The properties that results are ordered by, the most significant first.
    public var orderByProperties: [OrderByProperty]?
    /// Maximum number of objects; 0 means all, as in the in-memory database of the reference implementation.
    public var take: Int?
    /// Number of objects to skip.
    public var skip: Int?

    /// Creates a filter that all objects match.
    public init(orderByProperties: [OrderByProperty]? = nil, take: Int? = nil, skip: Int? = nil) {
        conditions = nil
        self.orderByProperties = orderByProperties
        self.take = take
        self.skip = skip
    }

    /// Creates a filter with a condition.
    ///
    /// - Throws: ``PayloadError`` if the wire format can't represent the condition: it nests `and`, `or` and `not`, has
    ///   an operand that is another property, or a property without a name. The pointer is that of the filter's JSON.
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

    /// Decodes a received filter, by the rules of the reference implementation.
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

    /// Decodes a number. A fraction is rounded up, as in the reference implementation.
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

    /// Encodes the filter in its wire format.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(conditions?.json(.wire), forKey: .conditions)
        try container.encodeIfPresent(orderByProperties, forKey: .orderByProperties)
        try container.encodeIfPresent(take, forKey: .take)
        try container.encodeIfPresent(skip, forKey: .skip)
    }
}

extension JSONView {
    /// Checks that this is an object and, if a person wrote it, that it has only the members of a filter.
    func checkFilter(_ names: [String], _ dialect: FilterDialect) throws(PayloadError) {
        if dialect == .person, let text = shortText, (try? ObjectFilterCondition.carried(self, dialect)) != nil {
            throw .invalid(self, "must be an object filter, not a condition: use {\"conditions\":\(text)}")
        }
        guard kind == .object else { throw .invalid(self, "must be an object") }
        if dialect == .person { try checkMembers(names) }
    }

    /// Checks that an object has only these members.
    func checkMembers(_ names: [String]) throws(PayloadError) {
        for (key, value) in members where !names.contains(where: { key.isString($0) }) {
            throw .invalid(value, "is unknown, must be one of \(names.joined(separator: ", "))")
        }
    }
}
