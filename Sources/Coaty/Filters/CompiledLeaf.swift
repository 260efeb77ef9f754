/// A condition on one property. It is a class, because an object is retained once, whereas the parts of a struct would
/// be retained for each evaluation.
final class CompiledLeaf: Sendable {
    /// The operand that a property is compared with.
    enum Operand: Sendable, Hashable {
        case value(Constant)
        /// The values of `In` and `NotIn`: scalars, and arrays and objects.
        case oneOf(Set<Scalar>, [Constant])
        /// The pattern of `Like`; nil if it is too long to match anything.
        case pattern(LikePattern?)
        case property(PropertyPath)
    }

    let path: PropertyPath
    let filterOperator: ObjectFilterOperator
    let first: Operand?
    let second: Operand?

    init(_ property: ObjectFilterProperty, _ expression: ObjectFilterExpression) {
        path = PropertyPath(property)
        filterOperator = expression.filterOperator
        first = expression.firstOperand.map { Operand($0, of: expression.filterOperator) }
        second = expression.secondOperand.map { Operand($0, of: expression.filterOperator) }
    }

    /// Returns a property's value.
    typealias Lookup = (PropertyPath) -> FilterValue?

    /// Returns whether the condition holds. With a missing operand, no comparison holds, and no value equals or
    /// contains it. An operator does not hold for types that it does not support.
    func holds(_ budget: inout WorkBudget, _ lookup: Lookup) throws(WorkExceeded) -> Bool {
        try budget.spend(1 + path.names.count)
        guard let value = lookup(path) else { return filterOperator == .NotExists }
        if filterOperator == .Exists || filterOperator == .NotExists { return filterOperator == .Exists }
        guard let first = try first?.resolved(&budget, lookup) else {
            return filterOperator == .NotEquals || filterOperator == .NotContains
        }
        return try verdict(on: value, first, second?.resolved(&budget, lookup), &budget) ?? false
    }

    /// Returns whether the condition is true; nil if that is unknown.
    func truth(
        _ budget: inout WorkBudget,
        _ openRoots: Set<String>,
        _ roots: (String) -> JSONView?
    ) throws(WorkExceeded) -> Bool? {
        try budget.spend(1 + path.names.count)
        guard let name = path.names.first, roots(name.text) != nil else { return nil }
        func lookup(_ path: PropertyPath) -> FilterValue? { path.value(inRoots: roots).map { FilterValue($0) } }
        let value = lookup(path)
        if filterOperator == .Exists || filterOperator == .NotExists {
            if value == nil, openRoots.contains(name.text) { return nil }
            return (value != nil) == (filterOperator == .Exists)
        }
        guard let value, let first = try first?.resolved(&budget, lookup) else { return nil }
        return try verdict(on: value, first, second?.resolved(&budget, lookup), &budget)
    }

    /// Compares a value with the operands, by an operator that has operands.
    ///
    /// - Returns: nil if the operator does not support the types, or an operand is missing.
    private func verdict(
        on value: FilterValue,
        _ first: Operand,
        _ second: Operand?,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool? {
        switch filterOperator {
        case .LessThan: return try Self.order(value, first, &budget).map { $0 < 0 }
        case .LessThanOrEqual: return try Self.order(value, first, &budget).map { $0 <= 0 }
        case .GreaterThan: return try Self.order(value, first, &budget).map { $0 > 0 }
        case .GreaterThanOrEqual: return try Self.order(value, first, &budget).map { $0 >= 0 }
        case .Between: return try Self.isBetween(value, first, second, &budget)
        case .NotBetween: return try Self.isBetween(value, first, second, &budget).map { !$0 }
        case .Like: return try Self.isLike(value, first, &budget)
        case .Equals, .NotEquals:
            guard case .value(let constant) = first else { return nil }
            return try DeepComparison.isEqual(value, constant, &budget) == (filterOperator == .Equals)
        case .Contains, .NotContains:
            // The reference implementation throws on an object and null; here neither operator holds.
            guard case .value(let constant) = first, value.view.kind != .object || constant != .scalar(.null) else {
                return nil
            }
            return try DeepComparison.contains(value.view, constant, &budget) == (filterOperator == .Contains)
        case .In, .NotIn: return try Self.isIncluded(value, first, &budget).map { $0 == (filterOperator == .In) }
        case .Exists, .NotExists: return nil
        }
    }

    private static func order(
        _ value: FilterValue,
        _ operand: Operand,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Int? {
        guard let left = try OrderedValue(value, &budget), let right = OrderedValue(operand) else { return nil }
        return try left.compare(right, &budget)
    }

    private static func isBetween(
        _ value: FilterValue,
        _ first: Operand,
        _ second: Operand?,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool? {
        guard let value = try OrderedValue(value, &budget), let first = OrderedValue(first),
            let second = second.flatMap({ OrderedValue($0) }), let order = try first.compare(second, &budget),
            let toLower = try value.compare(order > 0 ? second : first, &budget),
            let toUpper = try value.compare(order > 0 ? first : second, &budget)
        else { return nil }
        return toLower >= 0 && toUpper <= 0
    }

    private static func isLike(
        _ value: FilterValue,
        _ operand: Operand,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool? {
        guard value.view.kind == .string else { return nil }
        let pattern: LikePattern?
        switch operand {
        case .pattern(let known): pattern = known
        case .value(.scalar(.string(let text))): pattern = LikePattern(text.text)
        default: return nil
        }
        guard let pattern else { return nil }
        try budget.spend(bytes: value.view.bytes.count)
        guard case .string(let text) = value.scalar else { return nil }
        return try pattern.matches(text.text, &budget)
    }

    private static func isIncluded(
        _ value: FilterValue,
        _ operand: Operand,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool? {
        let others: [Constant]
        switch operand {
        case .oneOf(let scalars, let list):
            if value.view.kind != .array, value.view.kind != .object {
                try budget.spend(bytes: value.view.bytes.count)
                return value.scalar.map(scalars.contains)
            }
            others = list
        case .value(.array(let list)): others = list
        // The reference implementation throws on an operand that is not an array; here neither operator holds.
        default: return nil
        }
        for constant in others where try DeepComparison.isEqual(value, constant, &budget) { return true }
        return false
    }

    var footprint: Int {
        [first, second].reduce(2 * MemoryLayout<Operand?>.stride + path.footprint) { $0 + ($1?.footprint ?? 0) }
    }
}

extension CompiledLeaf: Hashable {
    static func == (left: CompiledLeaf, right: CompiledLeaf) -> Bool {
        left === right
            || left.filterOperator == right.filterOperator && left.path == right.path && left.first == right.first
                && left.second == right.second
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(filterOperator)
        hasher.combine(path)
        hasher.combine(first)
        hasher.combine(second)
    }
}

extension CompiledLeaf.Operand {
    init(_ operand: ObjectFilterOperand, of filterOperator: ObjectFilterOperator) {
        switch (operand, filterOperator) {
        case (.property(let property), _): self = .property(PropertyPath(property))
        case (.value(.string(let text)), .Like): self = .pattern(LikePattern(text))
        case (.value(.array(let values)), .In), (.value(.array(let values)), .NotIn):
            var (scalars, others): (Set<Scalar>, [Constant]) = ([], [])
            for value in values {
                if let scalar = Scalar(value) { scalars.insert(scalar) } else { others.append(Constant(value)) }
            }
            self = .oneOf(scalars, others)
        case (.value(let value), _): self = .value(Constant(value))
        }
    }

    /// Returns the operand, or the property's value if the operand is a property; nil if that property is missing.
    fileprivate func resolved(
        _ budget: inout WorkBudget,
        _ lookup: CompiledLeaf.Lookup
    ) throws(WorkExceeded) -> Self? {
        guard case .property(let path) = self else { return self }
        try budget.spend(path.names.count)
        guard let view = lookup(path)?.view else { return nil }
        try budget.spend(view.valueCount + view.bytes.count / 16)
        return .value(Constant(view))
    }

    fileprivate var footprint: Int {
        switch self {
        case .value(let constant): constant.footprint
        case .oneOf(let scalars, let others):
            // A set has up to 4/3 slots for each value.
            scalars.reduce(64) { $0 + MemoryLayout<Scalar>.stride * 4 / 3 + $1.footprint }
                + others.reduce(32) { $0 + $1.footprint }
        case .pattern(let pattern): pattern?.footprint ?? 0
        case .property(let path): path.footprint
        }
    }
}
