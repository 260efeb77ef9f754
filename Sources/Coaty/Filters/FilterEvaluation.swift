extension ObjectFilterCondition {
    /// Default maximum number of steps for a condition on one object.
    static let maximumSteps = 1_000_000
    /// Default maximum number of steps for a condition on several objects: rules decide on all pairs of sources and
    /// actors, and compare scalars.
    static let maximumStepsOfPairs = 10_000

    /// Returns whether the condition holds for an object. Neither the condition nor its opposite holds if evaluating it
    /// takes more work than comparing some hundred thousand scalars.
    public func matches(_ object: JSONView) -> Bool {
        var budget = WorkBudget(steps: Self.maximumSteps)
        return (try? CompiledCondition(self).holds(for: object, &budget)) ?? false
    }

    /// Returns whether the condition holds for several named objects. The first name of a property is that of its
    /// object. A property of a missing object does not exist. The condition does not hold if evaluating it takes more
    /// work than comparing some thousand scalars.
    public func matches(roots: (String) -> JSONView?) -> Bool {
        var budget = WorkBudget(steps: Self.maximumStepsOfPairs)
        return (try? CompiledCondition(self).holds(roots: roots, &budget)) ?? false
    }
}
