extension ObjectFilterCondition {
    /// Returns whether the condition is true for several objects, in three-valued logic (Kleene); nil if that is unknown.
    ///
    /// Unlike ``matches(roots:)`` it is for conditions that protect something: a missing property, or a type that the operator
    /// does not take, is unknown, and so is the opposite of it. `Exists` and `NotExists` ask for missing properties and are
    /// true or false. What takes more work than `steps` allows is unknown.
    ///
    /// - Parameters:
    ///   - steps: the steps of a budget that the whole condition shares.
    ///   - openRoots: roots whose missing properties may exist elsewhere: `Exists` and `NotExists` are unknown too.
    ///   - roots: the object of a root; everything about a root without one is unknown.
    package func truth(steps: Int, openRoots: Set<String> = [], roots: (String) -> JSONView?) -> Bool? {
        var budget = FilterBudget(steps: steps)
        return truth(0, &budget, openRoots, roots)
    }

    private func truth(
        _ depth: Int,
        _ budget: inout FilterBudget,
        _ openRoots: Set<String>,
        _ roots: (String) -> JSONView?
    ) -> Bool? {
        // An exhausted budget stays exhausted, so all that follows is unknown too.
        guard depth <= Self.maximumDepth, (try? budget.spend(1)) != nil else { return nil }
        switch self {
        case .property(let property, let expression):
            return try? expression.truth(for: property, &budget, openRoots, roots)
        case .not(let condition): return condition.truth(depth + 1, &budget, openRoots, roots).map { !$0 }
        case .and(let conditions): return truth(of: conditions, until: false, depth, &budget, openRoots, roots)
        case .or(let conditions): return truth(of: conditions, until: true, depth, &budget, openRoots, roots)
        }
    }

    /// One condition that is `deciding` decides, whatever the others are.
    private func truth(
        of conditions: [ObjectFilterCondition],
        until deciding: Bool,
        _ depth: Int,
        _ budget: inout FilterBudget,
        _ openRoots: Set<String>,
        _ roots: (String) -> JSONView?
    ) -> Bool? {
        var truth: Bool? = !deciding
        for condition in conditions {
            let part = condition.truth(depth + 1, &budget, openRoots, roots)
            if part == deciding { return deciding }
            if part == nil { truth = nil }
        }
        return truth
    }
}

extension ObjectFilterExpression {
    fileprivate func truth(
        for property: ObjectFilterProperty,
        _ budget: inout FilterBudget,
        _ openRoots: Set<String>,
        _ roots: (String) -> JSONView?
    ) throws(FilterBudget.Exhausted) -> Bool? {
        guard let name = property.names.first, let root = roots(name) else { return nil }
        let value = root.value(at: property.names.dropFirst())
        if filterOperator == .Exists || filterOperator == .NotExists {
            if value == nil, openRoots.contains(name) { return nil }
            return (value != nil) == (filterOperator == .Exists)
        }
        func lookup(_ property: ObjectFilterProperty) -> JSONView? { property.value(inRoots: roots) }
        guard let value, let first = try firstOperand?.value(&budget, lookup) else { return nil }
        return try verdict(on: value, first, secondOperand?.value(&budget, lookup), &budget)
    }
}
