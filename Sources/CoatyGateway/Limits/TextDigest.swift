import Coaty

/// A text of any length that others choose, as the key of a table that keeps it: a short text itself, and 128 bits that stand for a
/// longer one.
///
/// The bits are keyed with random numbers, so that nobody can find two texts with the same.
enum TextDigest: Hashable, Sendable {
    case text(WireName)
    case digest(high: UInt64, low: UInt64)

    /// Maximum length in bytes of a text that is kept itself. Most ids are UUIDs, which have 36.
    private static let maximumText = 64

    /// Makes digests that can be compared with each other.
    struct Key: Sendable {
        private let first = Seed()
        private let second = Seed()

        func digest(of text: String) -> TextDigest {
            text.utf8.count <= TextDigest.maximumText
                ? .text(WireName(text)) : .digest(high: first.hash(text), low: second.hash(text))
        }
    }

    private struct Seed: Sendable {
        private let words = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

        /// SipHash of the seed and the text; the key of `Hasher` itself is the same in the whole process.
        func hash(_ text: String) -> UInt64 {
            var hasher = Hasher()
            hasher.combine(words.0)
            hasher.combine(words.1)
            WireName(text).hash(into: &hasher)
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }
    }
}
