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

/// A property's value as conditions read it.
struct FilterValue: Sendable {
    /// Maximum size, in bytes, of a value that is read before a condition has spent steps for it.
    private static let maximumRead = 64

    let view: JSONView
    private let read: Scalar?

    init(_ view: JSONView, isRead: Bool = false) {
        self.view = view
        read = isRead && view.bytes.count <= Self.maximumRead ? Scalar(view) : nil
    }

    /// The value; nil for arrays and objects.
    var scalar: Scalar? { read ?? Scalar(view) }
}
