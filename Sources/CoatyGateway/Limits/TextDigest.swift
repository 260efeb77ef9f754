import Coaty

/// 128 bits that stand for a text of any length, for tables that keep what others choose.
///
/// Keyed with random numbers, so that nobody can find two texts with one digest.
struct TextDigest: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// Makes digests that can be compared with each other.
    struct Key: Sendable {
        private let first = Seed()
        private let second = Seed()

        func digest(of text: String) -> TextDigest {
            TextDigest(high: first.hash(text), low: second.hash(text))
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
