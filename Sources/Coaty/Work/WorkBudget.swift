/// The work that an evaluation may still take. Conditions and the objects they are judged on come from others, and both can be
/// made to cost much more than their size.
///
/// A step is a condition, a name that is looked up, a value that is compared, 16 bytes of one, or 16 moves of a pattern: some
/// 50 ns. A budget that has been exceeded stays exceeded.
package struct WorkBudget: Sendable {
    /// The steps that are left; below 0 once the budget has been exceeded.
    package private(set) var left: Int

    /// Creates a budget of a number of steps.
    package init(steps: Int) {
        left = steps
    }

    /// Takes steps before the work is done.
    package mutating func spend(_ steps: Int = 1) throws(WorkExceeded) {
        left -= steps
        if left < 0 { throw WorkExceeded() }
    }

    /// Takes the steps for a value of a size.
    package mutating func spend(bytes: Int) throws(WorkExceeded) {
        try spend(1 + bytes / 16)
    }
}

/// An evaluation takes more work than its budget allows, so that its result is unknown.
package struct WorkExceeded: Error {
    package init() {}
}
