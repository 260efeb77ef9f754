/// A pattern of the operator `Like`.
///
/// It works on UTF-16 code units, and neither wildcard matches a line break, like the regular expressions of the
/// reference implementation.
struct LikePattern: Sendable, Hashable {
    /// Maximum length of a pattern, in UTF-16 code units. A longer pattern matches nothing: the limit bounds the work
    /// for each unit of text.
    static let maximumLength = 1024

    private enum Token: Sendable, Hashable {
        case unit(UInt16), anyUnit, anyRun
    }

    private let tokens: [Token]

    init?(_ pattern: String) {
        var tokens: [Token] = []
        var isEscaped = false
        for unit in pattern.utf16 {
            guard tokens.count < Self.maximumLength else { return nil }
            switch (unit, isEscaped) {
            case (0x5C, false):
                isEscaped = true
                continue
            case (0x5F, false): tokens.append(.anyUnit)
            case (0x25, false): tokens.append(.anyRun)
            default: tokens.append(.unit(unit))
            }
            isEscaped = false
        }
        self.tokens = tokens
    }

    /// Returns whether a text matches. It never backtracks beyond the last `%`: the earliest match of the part before
    /// it leaves the most text for the rest. If a `%` would have to match a line break, a later match of the earlier
    /// part does not help, because it would be before the same line break.
    func matches(_ text: String, _ budget: inout WorkBudget) throws(WorkExceeded) -> Bool {
        let units = Array(text.utf16)
        var moves = 0
        var (position, token) = (0, 0)
        var run: (token: Int, end: Int)?
        while position < units.count || token < tokens.count {
            moves += 1
            if moves % 16 == 0 { try budget.spend(1) }
            if token < tokens.count {
                if tokens[token] == .anyRun {
                    run = (token, position)
                    token += 1
                    continue
                }
                if position < units.count, Self.matches(tokens[token], units[position]) {
                    position += 1
                    token += 1
                    continue
                }
            }
            guard let last = run, last.end < units.count, !Self.isLineBreak(units[last.end]) else { return false }
            run = (last.token, last.end + 1)
            (position, token) = (last.end + 1, last.token + 1)
        }
        return true
    }

    var footprint: Int { 32 + tokens.count * MemoryLayout<Token>.stride }

    private static func matches(_ token: Token, _ unit: UInt16) -> Bool {
        token == .unit(unit) || (token == .anyUnit && !isLineBreak(unit))
    }

    private static func isLineBreak(_ unit: UInt16) -> Bool {
        [0x0A, 0x0D, 0x2028, 0x2029].contains(unit)
    }
}
