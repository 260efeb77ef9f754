/// Reads the numbers of a checked text.
enum JSONNumber {
    /// Returns the nearest double; infinity if the number is too large.
    static func double(_ text: Span<UInt8>) -> Double {
        // A significand of up to 2^53 and a power of ten of up to 10^22 are exact, so that one operation rounds
        // correctly (Clinger, "How to read floating point numbers accurately"). 5 times faster than strtod(3).
        guard let decimal = Decimal(text), decimal.significand <= 1 << 53, abs(decimal.exponent) < powers.count else {
            return Double(string(text)) ?? .infinity
        }
        let significand = Double(decimal.significand)
        let magnitude =
            decimal.exponent < 0 ? significand / powers[-decimal.exponent] : significand * powers[decimal.exponent]
        return decimal.isNegative ? -magnitude : magnitude
    }

    /// Returns the number if it is written as an integer, without fraction and exponent, and fits.
    static func integer<Integer: FixedWidthInteger>(_ text: Span<UInt8>, as: Integer.Type = Integer.self) -> Integer? {
        let isNegative = text[0] == UInt8(ascii: "-")
        var result: Integer = 0
        for index in (isNegative ? 1 : 0)..<text.count {
            guard let digit = digit(text[index]) else { return nil }
            let (product, hasOverflown) = result.multipliedReportingOverflow(by: 10)
            let (sum, hasSumOverflown) =
                isNegative
                ? product.subtractingReportingOverflow(Integer(digit))
                : product.addingReportingOverflow(Integer(digit))
            guard !hasOverflown, !hasSumOverflown else { return nil }
            result = sum
        }
        return result
    }

    /// Returns the number if its value is an integer that fits, however it is written: `1e2` and `100.0` are 100.
    ///
    /// Foundation's rule: up to 2^53 the nearest double is decisive, beyond it the decimal digits.
    static func integralValue<Integer: FixedWidthInteger>(_ text: Span<UInt8>) -> Integer? {
        if let integer = integer(text, as: Integer.self) { return integer }
        let double = double(text)
        guard let integer = Integer(exactly: double) else { return nil }
        guard double.magnitude >= 0x1p53 else { return integer }
        guard let decimal = Decimal(text), decimal.exponent < 40 else { return nil }
        var magnitude = Integer.Magnitude(exactly: decimal.significand)
        for _ in 0..<max(0, decimal.exponent) {
            guard let (product, hasOverflown) = magnitude?.multipliedReportingOverflow(by: 10), !hasOverflown else {
                return nil
            }
            magnitude = product
        }
        for _ in 0..<max(0, -decimal.exponent) { magnitude = magnitude.map { $0 / 10 } }
        guard let magnitude else { return nil }
        return decimal.isNegative ? Integer(exactly: magnitude).map { 0 - $0 } : Integer(exactly: magnitude)
    }

    /// Whether all digits before an exponent are 0.
    static func isZero(_ text: Span<UInt8>) -> Bool {
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "1")...UInt8(ascii: "9"): return false
            case UInt8(ascii: "e"), UInt8(ascii: "E"): return true
            default: continue
            }
        }
        return true
    }

    static func string(_ text: Span<UInt8>) -> String {
        text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") ? byte - UInt8(ascii: "0") : nil
    }

    private static let powers: [Double] = (0...22).reduce(into: []) { powers, _ in
        powers.append((powers.last ?? 0.1) * 10)
    }

    /// A number as `significand * 10^exponent`.
    private struct Decimal {
        var significand: UInt64 = 0
        var exponent = 0
        var isNegative = false

        /// - Returns: nil if the significand without zeros at its end does not fit, or the exponent has more than four
        ///   digits.
        init?(_ text: Span<UInt8>) {
            var index = 0
            var isFraction = false
            // The zeros behind the significand so far.
            var zeros = 0
            if text[0] == UInt8(ascii: "-") {
                isNegative = true
                index = 1
            }
            while index < text.count {
                let byte = text[index]
                index += 1
                if let digit = JSONNumber.digit(byte) {
                    if isFraction { exponent -= 1 }
                    if digit == 0 {
                        if significand > 0 { zeros += 1 }
                    } else {
                        guard append(digit, behind: zeros) else { return nil }
                        zeros = 0
                    }
                } else if byte == UInt8(ascii: ".") {
                    isFraction = true
                } else {
                    let isPlus = text[index] == UInt8(ascii: "+")
                    let power = text.extracting((isPlus ? index + 1 : index)...)
                    guard power.count <= (text[index] == UInt8(ascii: "-") ? 5 : 4),
                        let power: Int = JSONNumber.integer(power)
                    else { return nil }
                    exponent += power
                    break
                }
            }
            exponent += zeros
        }

        private mutating func append(_ digit: UInt8, behind zeros: Int) -> Bool {
            guard zeros < 20 else { return false }
            for _ in 0...zeros {
                let (product, hasOverflown) = significand.multipliedReportingOverflow(by: 10)
                guard !hasOverflown else { return false }
                significand = product
            }
            let (sum, hasOverflown) = significand.addingReportingOverflow(UInt64(digit))
            significand = sum
            return !hasOverflown
        }
    }
}
