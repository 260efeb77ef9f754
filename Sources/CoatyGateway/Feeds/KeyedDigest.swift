import Coaty

/// 128 bits that stand for a text or a value of any size: equal values have equal digests.
///
/// Keyed with random numbers of this process, so that nobody can choose different values with the same digest.
struct KeyedDigest: Hashable, Sendable {
    private static let keys = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    private let halves: (Int, Int)

    init(_ value: some Hashable) {
        self.init { $0.combine(value) }
    }

    /// - Parameter combine: feeds the hasher; called twice, and must do the same each time.
    init(_ combine: (inout Hasher) -> Void) {
        halves = (Self.half(Self.keys.0, combine), Self.half(Self.keys.1, combine))
    }

    private static func half(_ key: UInt64, _ combine: (inout Hasher) -> Void) -> Int {
        var hasher = Hasher()
        hasher.combine(key)
        combine(&hasher)
        return hasher.finalize()
    }

    static func == (left: KeyedDigest, right: KeyedDigest) -> Bool { left.halves == right.halves }

    func hash(into hasher: inout Hasher) { hasher.combine(halves.0) }
}
