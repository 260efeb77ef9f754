/// Hashes of sequences of event hashes: polynomials modulo 2^61 - 1 at a secret place. The hash of a part of a sequence
/// follows from the hashes of two of its prefixes.
struct WindowHash: Sendable {
    static let modulus: UInt64 = 1 << 61 - 1
    /// Maximum length of a part.
    static let maximumLength = Int(UInt16.max)

    private let base: UInt64
    /// The powers of the base: those below 256, and those of its 256th power.
    private let low: [UInt64]
    private let high: [UInt64]

    init(base: UInt64) {
        self.base = Self.reduced(base)
        low = Self.powers(of: self.base)
        high = Self.powers(of: Self.product(low[255], self.base))
    }

    private static func powers(of base: UInt64) -> [UInt64] {
        var powers: [UInt64] = [1]
        for _ in 1..<256 { powers.append(product(powers[powers.count - 1], base)) }
        return powers
    }

    /// Returns the hash of a sequence with one more element.
    func appending(_ element: UInt64, to sequence: UInt64) -> UInt64 {
        Self.sum(Self.product(sequence, base), Self.reduced(element))
    }

    /// Returns the hash of the last elements of a sequence.
    ///
    /// - Parameters:
    ///   - beginning: the hash of the sequence without them.
    ///   - length: their number, at most ``maximumLength``.
    func last(_ length: Int, of sequence: UInt64, behind beginning: UInt64) -> UInt64 {
        let power = Self.product(low[length & 255], high[length >> 8])
        return Self.sum(sequence, Self.modulus - Self.product(beginning, power))
    }

    private static func reduced(_ number: UInt64) -> UInt64 {
        let folded = (number & modulus) + number >> 61
        return folded >= modulus ? folded - modulus : folded
    }

    private static func sum(_ left: UInt64, _ right: UInt64) -> UInt64 { reduced(left + right) }

    private static func product(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (high, low) = left.multipliedFullWidth(by: right)
        return sum(low & modulus, reduced(low >> 61 | high << 3))
    }
}
