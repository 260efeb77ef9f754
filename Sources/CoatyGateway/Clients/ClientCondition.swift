import Coaty

/// Filter conditions from clients. Their cost is bounded, because each is evaluated for every event.
extension CompiledCondition {
    /// Maximum number of property conditions in a filter.
    static let maximumProperties = 100
    /// Maximum number of evaluation steps for one event. A condition that needs more does not match.
    static let maximumSteps = 10_000

    /// Reads a condition that a client sent.
    ///
    /// - Throws: `PayloadError`
    init(ofClient view: JSONView) throws(PayloadError) {
        try view.checkValues()
        let condition = try ObjectFilterCondition(view)
        guard condition.leafCount <= Self.maximumProperties else {
            throw view.invalid("is about more than \(Self.maximumProperties) properties")
        }
        self.init(condition)
    }

    /// Returns whether the condition matches at least one of the objects of an event.
    func holds(forOneOf objects: [JSONView]) -> Bool {
        var budget = WorkBudget(steps: Self.maximumSteps)
        return (try? holds(forOneOf: objects, &budget)) ?? false
    }
}
