package import Coaty

/// A filter condition of a client. Its cost is bounded, because it is evaluated for every event.
package struct ClientCondition: Hashable, Sendable {
    package let condition: CompiledCondition
    /// Maximum number of evaluation steps for one event or response.
    let maximumSteps: Int

    /// Reads a condition that a client sent.
    ///
    /// - Throws: `PayloadError`
    package init(_ view: JSONView, limits: Limits) throws(PayloadError) {
        try view.checkValues()
        var values = limits.filterValues
        guard view.countsValues(&values) else { throw view.invalid("has more than \(limits.filterValues) values") }
        let condition = try ObjectFilterCondition(view)
        guard condition.leafCount <= limits.filterProperties else {
            throw view.invalid("is about more than \(limits.filterProperties) properties")
        }
        self.condition = CompiledCondition(condition)
        maximumSteps = limits.filterSteps
    }

    /// Runs a body that evaluates the condition, and returns its result with the number of steps.
    package func evaluate<Result>(
        _ body: (inout WorkBudget) throws(WorkExceeded) -> Result
    ) -> (result: Result?, steps: Int) {
        var budget = WorkBudget(steps: maximumSteps)
        let result = try? body(&budget)
        return (result, maximumSteps - budget.left)
    }
}

extension JSONView {
    /// Counts this and all values in it down from `left`.
    ///
    /// - Returns: false if there are more.
    fileprivate func countsValues(_ left: inout Int) -> Bool {
        left -= 1
        guard left >= 0 else { return false }
        for element in elements where !element.countsValues(&left) { return false }
        for (_, value) in members where !value.countsValues(&left) { return false }
        return true
    }
}

extension ObjectFilterCondition {
    /// Number of conditions on properties; an empty `and` or `or` counts as one.
    package var leafCount: Int {
        switch self {
        case .property: 1
        case .and(let list), .or(let list): list.isEmpty ? 1 : list.reduce(0) { $0 + $1.leafCount }
        case .not(let condition): condition.leafCount
        }
    }
}
