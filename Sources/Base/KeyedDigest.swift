/// A 128-bit digest of a value of any size: equal values have equal digests.
///
/// Keyed with random numbers of this process, so that different values with the same digest can't be constructed.
package struct KeyedDigest: Hashable, Sendable {
    private static let keys = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    private let halves: (Int, Int)

    package init(_ value: some Hashable) {
        halves = (Self.half(Self.keys.0, value), Self.half(Self.keys.1, value))
    }

    private static func half(_ key: UInt64, _ value: some Hashable) -> Int {
        var hasher = Hasher()
        hasher.combine(key)
        hasher.combine(value)
        return hasher.finalize()
    }

    package static func == (left: KeyedDigest, right: KeyedDigest) -> Bool { left.halves == right.halves }

    package func hash(into hasher: inout Hasher) { hasher.combine(halves.0) }
}
