/// The parts of a filter, to be set one by one.
///
/// ```swift
/// let filter = try ObjectFilter.buildWithConditions {
///     $0.conditions = .and([.property("floor", .between(6, 8)), .property("name", .like("Lamp%"))])
///     $0.take = 10
/// }
/// ```
public struct ObjectFilterBuilder {
    /// The condition on objects, for ``ObjectFilter/buildWithCondition(_:)``.
    public var condition: ObjectFilterCondition?
    /// The condition on objects, for ``ObjectFilter/buildWithConditions(_:)``.
    public var conditions: ObjectFilterConditions?
    /// The properties that results are ordered by.
    public var orderByProperties: [OrderByProperty]?
    /// Maximum number of objects; 0 means all.
    public var take: Int?
    /// Number of objects to skip.
    public var skip: Int?

    fileprivate func build(_ conditions: ObjectFilterCondition?) throws(PayloadError) -> ObjectFilter {
        guard let conditions else { throw .invalid(pointer: "/conditions", reason: "missing") }
        return try ObjectFilter(conditions: conditions, orderByProperties: orderByProperties, take: take, skip: skip)
    }
}

/// Several conditions, as named in CoatySwift.
public typealias ObjectFilterConditions = ObjectFilterCondition

extension ObjectFilterCondition {
    /// Creates a condition that holds if all of the conditions hold.
    public init(and conditions: [ObjectFilterCondition]) { self = .and(conditions) }

    /// Creates a condition that holds if at least one of the conditions holds.
    public init(or conditions: [ObjectFilterCondition]) { self = .or(conditions) }
}

extension ObjectFilter {
    /// Builds a filter with one condition.
    ///
    /// - Throws: ``PayloadError`` if the condition is not set or can't be represented on the wire; the errors of the
    ///   closure.
    public static func buildWithCondition(_ closure: (inout ObjectFilterBuilder) throws -> Void) throws -> ObjectFilter
    {
        var builder = ObjectFilterBuilder()
        try closure(&builder)
        return try builder.build(builder.condition)
    }

    /// Builds a filter with several conditions.
    ///
    /// - Throws: ``PayloadError`` if the conditions are not set or can't be represented on the wire; the errors of the
    ///   closure.
    public static func buildWithConditions(_ closure: (inout ObjectFilterBuilder) throws -> Void) throws -> ObjectFilter
    {
        var builder = ObjectFilterBuilder()
        try closure(&builder)
        return try builder.build(builder.conditions)
    }
}
