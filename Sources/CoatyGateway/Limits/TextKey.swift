import Coaty

/// A text of any length that others choose, as the key of a table: a short text itself, a digest instead of a longer one.
enum TextKey: Hashable, Sendable {
    case text(WireName)
    case digest(KeyedDigest)

    /// Maximum length in bytes of a text that is kept itself. Most ids are UUIDs, which have 36.
    private static let maximumText = 64

    init(_ text: String) {
        let name = WireName(text)
        self = text.utf8.count <= Self.maximumText ? .text(name) : .digest(KeyedDigest(name))
    }
}
