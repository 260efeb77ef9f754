import Coaty

/// Filter conditions from clients. Their cost is bounded, because each is evaluated for every event.
extension CompiledCondition {
    /// Maximum number of evaluation steps for one event. A condition that needs more does not match.
    static let maximumSteps = 10_000

    /// Reads a condition that a client sent.
    ///
    /// - Throws: `PayloadError`
    init(ofClient view: JSONView, limits: Limits) throws(PayloadError) {
        try view.checkValues()
        var values = limits.filterValues
        guard view.countsValues(&values) else { throw view.invalid("has more than \(limits.filterValues) values") }
        let condition = try ObjectFilterCondition(view)
        guard condition.leafCount <= limits.filterProperties else {
            throw view.invalid("is about more than \(limits.filterProperties) properties")
        }
        self.init(condition)
    }

    /// Returns whether the condition matches at least one of the objects of an event.
    func holds(forOneOf objects: [JSONView]) -> Bool {
        var budget = WorkBudget(steps: Self.maximumSteps)
        return (try? holds(forOneOf: objects, &budget)) ?? false
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
