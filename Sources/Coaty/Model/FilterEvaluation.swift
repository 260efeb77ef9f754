extension ObjectFilterCondition {
    /// The most steps for a condition on one object, for those who set no limit.
    static let maximumSteps = 1_000_000
    /// The same for a condition on several objects: rules decide on all pairs of sources and actors, and compare scalars.
    static let maximumStepsOfPairs = 10_000

    /// Returns whether the condition holds for an object. It does not hold, nor does its opposite, if that takes more work than
    /// comparing some hundred thousand scalars.
    public func matches(_ object: JSONView) -> Bool {
        var budget = WorkBudget(steps: Self.maximumSteps)
        return (try? CompiledCondition(self).holds(for: object, &budget)) ?? false
    }

    /// Returns whether the condition holds for several objects, each of which has a name: a property's first name is that of its
    /// object. A property of an object that is not there does not exist. The condition does not hold if that takes more work
    /// than comparing some thousand scalars.
    public func matches(roots: (String) -> JSONView?) -> Bool {
        var budget = WorkBudget(steps: Self.maximumStepsOfPairs)
        return (try? CompiledCondition(self).holds(roots: roots, &budget)) ?? false
    }
}
