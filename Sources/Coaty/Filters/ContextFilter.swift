/// A filter for the contexts that a remote call is meant for: `{conditions?}` on the wire, as in ``ObjectFilter``.
public struct ContextFilter: Sendable, Hashable {
    /// The condition on the context; nil matches all. It can always be represented on the wire.
    public let conditions: ObjectFilterCondition?

    /// Creates a filter that all contexts match.
    public init() { conditions = nil }

    /// Creates a filter with a condition.
    ///
    /// - Throws: ``PayloadError`` if the wire format can't represent the condition: see ``ObjectFilter``.
    public init(conditions: ObjectFilterCondition) throws(PayloadError) {
        try conditions.checkCarried()
        self.conditions = conditions
    }

    /// Decodes a received filter, by the rules of the reference implementation.
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

    /// Encodes the filter in its wire format.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(conditions?.json(.wire), forKey: .conditions)
    }
}
