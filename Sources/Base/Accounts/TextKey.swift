package import Coaty

/// The key of a table for a text of any length from the network or a client: a short text is stored directly, a longer
/// one as a digest.
package enum TextKey: Hashable, Sendable {
    case text(WireName)
    case digest(KeyedDigest)

    /// Maximum length, in bytes, of a text that is stored directly. Most ids are UUIDs, which have 36.
    private static let maximumText = 64

    package init(_ text: String) {
        let name = WireName(text)
        self = text.utf8.count <= Self.maximumText ? .text(name) : .digest(KeyedDigest(name))
    }
}
