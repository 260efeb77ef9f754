extension ObjectFilterCondition {
    /// Whether the condition holds for an object.
    public func matches(_ object: JSONView) -> Bool {
        verdict(0) { object.value(at: $0.names) } ?? false
    }

    /// Whether the condition holds for several objects, each of which has a name: a property's first name is that of its
    /// object. A property of an object that is not there does not exist.
    public func matches(roots: (String) -> JSONView?) -> Bool {
        verdict(0) { $0.value(inRoots: roots) } ?? false
    }

    /// nil where the condition is nested too deep.
    private func verdict(_ depth: Int, _ lookup: (ObjectFilterProperty) -> JSONView?) -> Bool? {
        guard depth <= Self.maximumDepth else { return nil }
        switch self {
        case .property(let property, let expression): return expression.holds(for: lookup(property), lookup)
        case .not(let condition): return condition.verdict(depth + 1, lookup).map { !$0 }
        case .and(let conditions):
            for condition in conditions {
                guard let holds = condition.verdict(depth + 1, lookup) else { return nil }
                if !holds { return false }
            }
            return true
        case .or(let conditions):
            for condition in conditions {
                guard let holds = condition.verdict(depth + 1, lookup) else { return nil }
                if holds { return true }
            }
            return false
        }
    }
}

extension ObjectFilterProperty {
    /// The property's value where its first name is that of an object.
    func value(inRoots roots: (String) -> JSONView?) -> JSONView? {
        guard let name = names.first, let root = roots(name) else { return nil }
        return root.value(at: names.dropFirst())
    }
}

extension ObjectFilterExpression {
    /// An operand that is missing compares with nothing, and nothing equals or contains it.
    func holds(for value: JSONView?, _ lookup: (ObjectFilterProperty) -> JSONView?) -> Bool {
        guard let value else { return filterOperator == .NotExists }
        func operand(_ operand: ObjectFilterOperand?) -> AnyCodable? {
            switch operand {
            case .value(let value): value
            case .property(let property): lookup(property).map { AnyCodable($0) }
            case nil: nil
            }
        }
        let first = operand(firstOperand)
        switch filterOperator {
        case .LessThan: return Self.order(value, first).map { $0 < 0 } ?? false
        case .LessThanOrEqual: return Self.order(value, first).map { $0 <= 0 } ?? false
        case .GreaterThan: return Self.order(value, first).map { $0 > 0 } ?? false
        case .GreaterThanOrEqual: return Self.order(value, first).map { $0 >= 0 } ?? false
        case .Between: return Self.isBetween(value, first, operand(secondOperand)) ?? false
        case .NotBetween: return Self.isBetween(value, first, operand(secondOperand)).map { !$0 } ?? false
        case .Like:
            guard let text = value.string, case .string(let pattern) = first else { return false }
            return LikePattern(pattern)?.matches(text) ?? false
        case .Exists: return true
        case .NotExists: return false
        case .Equals, .NotEquals, .Contains, .NotContains, .In, .NotIn:
            var comparison = DeepComparison()
            return (try? holds(for: value, first, &comparison)) ?? false
        }
    }

    /// The operators that look at all levels of a value.
    private func holds(
        for value: JSONView,
        _ operand: AnyCodable?,
        _ comparison: inout DeepComparison
    ) throws(DeepComparison.Exhausted) -> Bool {
        switch (filterOperator, operand) {
        case (.Equals, let operand?): return try comparison.isEqual(value, operand)
        case (.NotEquals, let operand?): return try !comparison.isEqual(value, operand)
        case (.Contains, let operand?): return try comparison.contains(value, operand)
        // The reference throws on an object and null; neither operator holds then.
        case (.NotContains, .null?) where value.kind == .object: return false
        case (.NotContains, let operand?): return try !comparison.contains(value, operand)
        case (.In, .array(let values)?): return try comparison.isIncluded(value, in: values)
        case (.NotIn, .array(let values)?): return try !comparison.isIncluded(value, in: values)
        // An operand that is missing equals and contains nothing.
        case (.NotEquals, nil), (.NotContains, nil): return true
        // The reference throws on an operand that is no array; neither operator holds then.
        default: return false
        }
    }

    private static func order(_ value: JSONView, _ operand: AnyCodable?) -> Int? {
        guard let left = OrderedValue(value), let right = operand.flatMap({ OrderedValue($0) }) else { return nil }
        return left.compare(right)
    }

    private static func isBetween(_ value: JSONView, _ first: AnyCodable?, _ second: AnyCodable?) -> Bool? {
        guard let value = OrderedValue(value), let first = first.flatMap({ OrderedValue($0) }),
            let second = second.flatMap({ OrderedValue($0) }), let order = first.compare(second),
            let toLower = value.compare(order > 0 ? second : first),
            let toUpper = value.compare(order > 0 ? first : second)
        else { return nil }
        return toLower >= 0 && toUpper <= 0
    }
}
