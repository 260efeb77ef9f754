/// The remaining work of an evaluation. Conditions and the objects come from other agents and clients, and both can be
/// crafted so that they cost much more than their size.
///
/// A step of about 50 ns is a condition, a name lookup, a compared value, 16 bytes of a value, or 16 moves of a
/// pattern. A budget that was exceeded stays exceeded.
package struct WorkBudget: Sendable {
    /// The remaining steps; negative once the budget was exceeded.
    package private(set) var left: Int

    /// Creates a budget with a number of steps.
    package init(steps: Int) {
        left = steps
    }

    /// Spends steps. Call it before the work.
    package mutating func spend(_ steps: Int = 1) throws(WorkExceeded) {
        left -= steps
        if left < 0 { throw WorkExceeded() }
    }

    /// Spends the steps for a value of a given size.
    package mutating func spend(bytes: Int) throws(WorkExceeded) {
        try spend(1 + bytes / 16)
    }
}

/// The error of an evaluation that exceeds its budget, so that its result is unknown.
package struct WorkExceeded: Error {
    package init() {}
}
