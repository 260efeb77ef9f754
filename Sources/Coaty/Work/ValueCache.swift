/// The values that conditions asked of one object, so that each is looked up and read once for all of them.
///
/// A cache serves one object after the other, and keeps the last one. Conditions pay in full for what they find in it: what a
/// condition may cost does not depend on others.
package struct ValueCache: Sendable {
    private var object: JSONView?
    /// Not for paths without a value: of these there may be any number.
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

/// A property's value as a condition sees it.
struct FilterValue: Sendable {
    /// A longer value is not read before a condition has paid for it, in bytes.
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
