import Coaty

/// A duration that clients write as `2s`, `500ms` or a number of milliseconds.
enum ClientDuration {
    /// Returns the milliseconds of a text; nil if it is not a duration.
    ///
    /// - Parameter needsUnit: whether a number without a unit is refused, as in JSON, where it should be a number.
    static func milliseconds(_ text: String, needsUnit: Bool) -> Int? {
        let digits = text.prefix { "0"..."9" ~= $0 }
        guard let number = Int(digits) else { return nil }
        switch text[digits.endIndex...] {
        case "s":
            let (milliseconds, isTooLarge) = number.multipliedReportingOverflow(by: 1000)
            return isTooLarge ? nil : milliseconds
        case "ms": return number
        case "": return needsUnit ? nil : number
        default: return nil
        }
    }

    /// Returns the reason for refusing a value.
    static func refusal(_ range: ClosedRange<Int>) -> String {
        "must be a duration from \(range.lowerBound) to \(range.upperBound) milliseconds, such as 2s, 500ms or 500"
    }
}

extension JSONView {
    /// Returns a duration in milliseconds; throws if it is not one or not in `range`.
    func milliseconds(in range: ClosedRange<Int>) throws(PayloadError) -> Int {
        let value =
            string.map { ClientDuration.milliseconds($0, needsUnit: true) } ?? number.flatMap { Int(exactly: $0) }
        guard let value, range.contains(value) else { throw invalid(ClientDuration.refusal(range)) }
        return value
    }
}
