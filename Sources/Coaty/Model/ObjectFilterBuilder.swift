/// The parts of a filter, for those who set them one by one.
///
/// ```swift
/// let filter = try ObjectFilter.buildWithConditions {
///     $0.conditions = .and([.property("floor", .between(6, 8)), .property("name", .like("Lamp%"))])
///     $0.take = 10
/// }
/// ```
public struct ObjectFilterBuilder {
    /// What objects must be like, in ``ObjectFilter/buildWithCondition(_:)``.
    public var condition: ObjectFilterCondition?
    /// What objects must be like, in ``ObjectFilter/buildWithConditions(_:)``.
    public var conditions: ObjectFilterConditions?
    /// What results are ordered by.
    public var orderByProperties: [OrderByProperty]?
    /// How many objects are wanted at most; 0 is all of them.
    public var take: Int?
    /// How many objects are left out before the first.
    public var skip: Int?

    fileprivate func build(_ conditions: ObjectFilterCondition?) throws(PayloadError) -> ObjectFilter {
        guard let conditions else { throw .invalid(pointer: "/conditions", reason: "missing") }
        return try ObjectFilter(conditions: conditions, orderByProperties: orderByProperties, take: take, skip: skip)
    }
}

/// Several conditions, in CoatySwift's words.
public typealias ObjectFilterConditions = ObjectFilterCondition

extension ObjectFilterCondition {
    /// All hold.
    public init(and conditions: [ObjectFilterCondition]) { self = .and(conditions) }

    /// One holds at least.
    public init(or conditions: [ObjectFilterCondition]) { self = .or(conditions) }
}

extension ObjectFilter {
    /// Builds a filter with one condition.
    ///
    /// - Throws: ``PayloadError`` where the condition is not set, or is none that the wire can carry; what the closure throws.
    public static func buildWithCondition(_ closure: (inout ObjectFilterBuilder) throws -> Void) throws -> ObjectFilter
    {
        var builder = ObjectFilterBuilder()
        try closure(&builder)
        return try builder.build(builder.condition)
    }

    /// Builds a filter with several conditions.
    ///
    /// - Throws: ``PayloadError`` where the conditions are not set, or are none that the wire can carry; what the closure
    ///   throws.
    public static func buildWithConditions(_ closure: (inout ObjectFilterBuilder) throws -> Void) throws -> ObjectFilter
    {
        var builder = ObjectFilterBuilder()
        try closure(&builder)
        return try builder.build(builder.conditions)
    }
}
