/// The values of one object that conditions have read, so that each is looked up only once for all conditions.
///
/// A cache serves one object after another, and keeps the values of the last one. Conditions spend the full number of
/// steps for cached values too, so that the cost of a condition does not depend on others.
package struct ValueCache: Sendable {
    private var object: JSONView?
    /// Excludes paths without a value, because their number is unlimited.
    private var values: [PropertyPath: FilterValue] = [:]

    /// Creates an empty cache.
    package init() {}

    mutating func value(at path: PropertyPath, in object: JSONView) -> FilterValue? {
        if let current = self.object, current.isSame(as: object) {
            if let known = values[path] { return known }
        } else {
            self.object = object
            values.removeAll(keepingCapacity: true)
        }
        guard let view = path.value(in: object) else { return nil }
        let value = FilterValue(view, isRead: true)
        values[path] = value
        return value
    }
}
