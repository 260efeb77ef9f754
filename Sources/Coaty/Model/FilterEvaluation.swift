extension ObjectFilterCondition {
    /// Whether the condition holds for an object. Not where it takes too much work.
    public func matches(_ object: JSONView) -> Bool {
        var budget = FilterBudget()
        return verdict(0, &budget) { object.value(at: $0.names) } ?? false
    }

    /// Whether the condition holds for several objects, each of which has a name: a property's first name is that of its
    /// object. A property of an object that is not there does not exist. Does not hold where it takes more work than
    /// comparing some thousand scalars.
    public func matches(roots: (String) -> JSONView?) -> Bool {
        var budget = FilterBudget(steps: FilterBudget.maximumStepsOfPairs)
        return verdict(0, &budget) { $0.value(inRoots: roots) } ?? false
    }

    /// Whether the condition holds for one of several objects, all of which it may take a number of steps together.
    ///
    /// - Parameter steps: how much work it may take; ``matches(_:)`` takes at most a million steps.
    /// - Returns: nil where it takes more, or is nested too deep, before it holds for one.
    package func matches(any views: some Sequence<JSONView>, steps: Int) -> Bool? {
        var budget = FilterBudget(steps: steps)
        for object in views {
            guard let holds = verdict(0, &budget, { object.value(at: $0.names) }) else { return nil }
            if holds { return true }
        }
        return false
    }

    /// nil where the condition is nested too deep, or the budget is exhausted.
    private func verdict(_ depth: Int, _ budget: inout FilterBudget, _ lookup: FilterLookup) -> Bool? {
        guard depth <= Self.maximumDepth, (try? budget.spend(1)) != nil else { return nil }
        switch self {
        case .property(let property, let expression): return try? expression.holds(for: property, &budget, lookup)
        case .not(let condition): return condition.verdict(depth + 1, &budget, lookup).map { !$0 }
        case .and(let conditions):
            for condition in conditions {
                guard let holds = condition.verdict(depth + 1, &budget, lookup) else { return nil }
                if !holds { return false }
            }
            return true
        case .or(let conditions):
            for condition in conditions {
                guard let holds = condition.verdict(depth + 1, &budget, lookup) else { return nil }
                if holds { return true }
            }
            return false
        }
    }
}

/// Finds a property's value.
typealias FilterLookup = (ObjectFilterProperty) -> JSONView?

extension ObjectFilterProperty {
    /// The property's value where its first name is that of an object.
    func value(inRoots roots: (String) -> JSONView?) -> JSONView? {
        guard let name = names.first, let root = roots(name) else { return nil }
        return root.value(at: names.dropFirst())
    }
}

extension ObjectFilterOperand {
    /// Returns the value; nil where the operand is a property that is missing.
    func value(_ budget: inout FilterBudget, _ lookup: FilterLookup) throws(FilterBudget.Exhausted) -> AnyCodable? {
        switch self {
        case .value(let value): return value
        case .property(let property):
            guard let view = lookup(property) else { return nil }
            try budget.spend(bytes: view.bytes.count)
            return AnyCodable(view)
        }
    }
}

extension ObjectFilterExpression {
    /// An operand that is missing compares with nothing, and nothing equals or contains it. An operator does not hold for
    /// types that it does not take.
    func holds(
        for property: ObjectFilterProperty,
        _ budget: inout FilterBudget,
        _ lookup: FilterLookup
    ) throws(FilterBudget.Exhausted) -> Bool {
        guard let value = lookup(property) else { return filterOperator == .NotExists }
        if filterOperator == .Exists || filterOperator == .NotExists { return filterOperator == .Exists }
        guard let first = try firstOperand?.value(&budget, lookup) else {
            return filterOperator == .NotEquals || filterOperator == .NotContains
        }
        return try verdict(on: value, first, secondOperand?.value(&budget, lookup), &budget) ?? false
    }

    /// Compares a value with the operands, by an operator that has operands.
    ///
    /// - Returns: nil where the operator does not take the types, or misses an operand.
    func verdict(
        on value: JSONView,
        _ first: AnyCodable,
        _ second: AnyCodable?,
        _ budget: inout FilterBudget
    ) throws(FilterBudget.Exhausted) -> Bool? {
        switch filterOperator {
        case .LessThan: return try Self.order(value, first, &budget).map { $0 < 0 }
        case .LessThanOrEqual: return try Self.order(value, first, &budget).map { $0 <= 0 }
        case .GreaterThan: return try Self.order(value, first, &budget).map { $0 > 0 }
        case .GreaterThanOrEqual: return try Self.order(value, first, &budget).map { $0 >= 0 }
        case .Between: return try Self.isBetween(value, first, second, &budget)
        case .NotBetween: return try Self.isBetween(value, first, second, &budget).map { !$0 }
        case .Like:
            guard value.kind == .string, case .string(let pattern) = first else { return nil }
            try budget.spend(bytes: value.bytes.count + pattern.utf8.count)
            return try LikePattern(pattern)?.matches(value.string ?? "", &budget)
        case .Equals: return try DeepComparison.isEqual(value, first, &budget)
        case .NotEquals: return try !DeepComparison.isEqual(value, first, &budget)
        case .Contains, .NotContains:
            // The reference throws on an object and null; neither operator holds then.
            if value.kind == .object, first == .null { return nil }
            return try DeepComparison.contains(value, first, &budget) == (filterOperator == .Contains)
        case .In, .NotIn:
            // The reference throws on an operand that is no array; neither operator holds then.
            guard case .array(let values) = first else { return nil }
            return try DeepComparison.isIncluded(value, in: values, &budget) == (filterOperator == .In)
        case .Exists, .NotExists: return nil
        }
    }

    private static func order(
        _ value: JSONView,
        _ operand: AnyCodable?,
        _ budget: inout FilterBudget
    ) throws(FilterBudget.Exhausted) -> Int? {
        guard let left = try ordered(value, &budget), let right = try ordered(operand, &budget) else { return nil }
        return left.compare(right)
    }

    private static func isBetween(
        _ value: JSONView,
        _ first: AnyCodable?,
        _ second: AnyCodable?,
        _ budget: inout FilterBudget
    ) throws(FilterBudget.Exhausted) -> Bool? {
        guard let value = try ordered(value, &budget), let first = try ordered(first, &budget),
            let second = try ordered(second, &budget), let order = first.compare(second),
            let toLower = value.compare(order > 0 ? second : first),
            let toUpper = value.compare(order > 0 ? first : second)
        else { return nil }
        return toLower >= 0 && toUpper <= 0
    }

    private static func ordered(
        _ view: JSONView,
        _ budget: inout FilterBudget
    ) throws(FilterBudget.Exhausted) -> OrderedValue? {
        try budget.spend(bytes: view.bytes.count)
        return OrderedValue(view)
    }

    private static func ordered(
        _ json: AnyCodable?,
        _ budget: inout FilterBudget
    ) throws(FilterBudget.Exhausted) -> OrderedValue? {
        guard let value = json.flatMap({ OrderedValue($0) }) else { return nil }
        if case .text(let text) = value { try budget.spend(bytes: text.utf8.count) }
        return value
    }
}
