/// A request for objects that a result refers to. They are added to the result as an extra property.
public struct ObjectJoinCondition: Codable, Sendable, Hashable {
    /// The property that refers to other objects.
    public var localProperty: String
    /// The extra property for the other objects.
    public var asProperty: String
    /// Whether the local property is an array, each element of which refers to objects; absent means false.
    public var isLocalPropertyArray: Bool?
    /// Whether the extra property is one object instead of an array; absent means false.
    public var isOneToOneRelation: Bool?

    /// Creates a join condition.
    public init(
        localProperty: String,
        asProperty: String,
        isLocalPropertyArray: Bool? = nil,
        isOneToOneRelation: Bool? = nil
    ) {
        self.localProperty = localProperty
        self.asProperty = asProperty
        self.isLocalPropertyArray = isLocalPropertyArray
        self.isOneToOneRelation = isOneToOneRelation
    }

    private init(_ view: JSONView) throws(PayloadError) {
        try Self.rule.check(view)
        localProperty = view["localProperty"]?.string ?? ""
        asProperty = view["asProperty"]?.string ?? ""
        isLocalPropertyArray = view["isLocalPropertyArray"]?.bool
        isOneToOneRelation = view["isOneToOneRelation"]?.bool
    }

    private static let rule: ValueRule = .object([
        .required("localProperty", .string),
        .required("asProperty", .string),
        .optional("isLocalPropertyArray", .bool),
        .optional("isOneToOneRelation", .bool),
    ])

    /// Decodes the join conditions of a query: one, or an array of them.
    static func list(_ view: JSONView) throws(PayloadError) -> [ObjectJoinCondition] {
        guard view.kind == .array else { return [try ObjectJoinCondition(view)] }
        var conditions: [ObjectJoinCondition] = []
        for element in view.elements { conditions.append(try ObjectJoinCondition(element)) }
        return conditions
    }
}
