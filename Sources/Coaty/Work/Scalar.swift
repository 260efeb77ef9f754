/// A JSON value without parts, equal to others by value: strings byte by byte, numbers however they are written.
package enum Scalar: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A whole number: each of 64 bits, and each double below 2^100.
    case integer(Int128)
    /// The bits of any other double.
    case double(UInt64)
    case string(WireName)

    /// The value of a view; nil for arrays and objects.
    package init?(_ view: JSONView) {
        if view.kind == .array || view.kind == .object { return nil }
        self.init(AnyCodable(view))
    }

    /// The value; nil for arrays and objects.
    package init?(_ json: AnyCodable) {
        switch json {
        case .null: self = .null
        case .bool(let bool): self = .bool(bool)
        case .integer(let integer): self = .integer(Int128(integer))
        case .unsignedInteger(let integer): self = .integer(Int128(integer))
        case .double(let double): self.init(double)
        case .string(let text): self = .string(WireName(text))
        case .array, .object: return nil
        }
    }

    /// A number.
    init(_ double: Double) {
        let isWhole = abs(double) < 0x1p100 && double.rounded(.down) == double
        self = isWhole ? .integer(Int128(double)) : .double(double.bitPattern)
    }

    /// Returns a number below 0 if the left number is less, above 0 if it is greater; nil if one is not a number.
    static func compare(_ left: Scalar, _ right: Scalar) -> Int? {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): sign(left, right)
        case (.integer(let left), .double(let bits)): compare(left, Double(bitPattern: bits))
        case (.double(let bits), .integer(let right)): compare(right, Double(bitPattern: bits)).map { -$0 }
        case (.double(let left), .double(let right)):
            compare(Double(bitPattern: left), Double(bitPattern: right))
        default: nil
        }
    }

    private static func compare(_ left: Double, _ right: Double) -> Int? {
        left.isNaN || right.isNaN ? nil : sign(left, right)
    }

    private static func compare(_ integer: Int128, _ double: Double) -> Int? {
        guard !double.isNaN else { return nil }
        guard abs(double) < 0x1p100 else { return double < 0 ? 1 : -1 }
        // The double is not whole: it would be an integer.
        return sign(integer, Int128(double.rounded(.down))) > 0 ? 1 : -1
    }

    private static func sign<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
        left < right ? -1 : left > right ? 1 : 0
    }
}
