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
