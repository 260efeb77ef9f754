/// A JSON value that is not an array or object. Strings are compared byte by byte, numbers by value.
enum Scalar: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A whole number that fits, even if it is written as a double.
    case integer(Int64)
    /// A whole number that fits only into an unsigned type.
    case unsignedInteger(UInt64)
    /// The bits of any other number.
    case double(UInt64)
    case string(WireName)

    /// Creates the value of a view; nil for arrays and objects.
    init?(_ view: JSONView) {
        if view.kind == .array || view.kind == .object { return nil }
        self.init(AnyCodable(view))
    }

    /// Creates the value of a JSON value; nil for arrays and objects.
    init?(_ json: AnyCodable) {
        switch json {
        case .null: self = .null
        case .bool(let bool): self = .bool(bool)
        case .integer(let integer): self = .integer(integer)
        case .unsignedInteger(let integer): self.init(unsigned: integer)
        case .double(let double): self.init(double)
        case .string(let text): self = .string(WireName(text))
        case .array, .object: return nil
        }
    }

    /// Creates a number.
    init(_ double: Double) {
        if let integer = Int64(exactly: double) {
            self = .integer(integer)
        } else if let integer = UInt64(exactly: double) {
            self.init(unsigned: integer)
        } else {
            self = .double(double.bitPattern)
        }
    }

    private init(unsigned integer: UInt64) {
        self = Int64(exactly: integer).map(Scalar.integer) ?? .unsignedInteger(integer)
    }

    /// Returns a number below 0 if the left number is less, above 0 if it is greater; nil if one is not a number.
    static func compare(_ left: Scalar, _ right: Scalar) -> Int? {
        if case .integer(let left) = left, case .integer(let right) = right { return sign(left, right) }
        switch (left.whole, right.whole) {
        case (let left?, let right?): return sign(left, right)
        case (let left?, nil): return right.double.map { compare(left, $0) }
        case (nil, let right?): return left.double.map { -compare(right, $0) }
        case (nil, nil): return left.double.flatMap { left in right.double.map { sign(left, $0) } }
        }
    }

    /// Compares an integer with a double that is not a whole 64-bit number.
    private static func compare(_ integer: Int128, _ double: Double) -> Int {
        guard abs(double) < 0x1p64 else { return double < 0 ? 1 : -1 }
        return integer > Int128(double.rounded(.down)) ? 1 : -1
    }

    private static func sign<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
        left < right ? -1 : left > right ? 1 : 0
    }

    private var whole: Int128? {
        switch self {
        case .integer(let integer): Int128(integer)
        case .unsignedInteger(let integer): Int128(integer)
        default: nil
        }
    }

    private var double: Double? {
        guard case .double(let bits) = self else { return nil }
        let double = Double(bitPattern: bits)
        return double.isNaN ? nil : double
    }
}
