/// Why a condition holds for some objects, or does not: its tree, each part with the values compared and its own verdict.
///
/// In JSON `{holds, property, value?, operator, operands}` or `{holds, and | or | not | tooDeep | exhausted}`.
public struct ObjectFilterExplanation: Sendable, Hashable {
    /// Whether this part holds.
    public let holds: Bool
    /// What the part is made of.
    public let part: Part

    /// What a part is made of.
    public indirect enum Part: Sendable, Hashable {
        /// A property, its value if it has one, and what that is compared with.
        case property(ObjectFilterProperty, ExplainedValue?, ObjectFilterOperator, [Operand])
        /// All hold.
        case and([ObjectFilterExplanation])
        /// One holds at least.
        case or([ObjectFilterExplanation])
        /// The other does not hold.
        case not(ObjectFilterExplanation)
        /// Nested deeper than ``ObjectFilterCondition/maximumDepth``: neither it nor what it is needed for holds.
        case tooDeep
        /// The condition took too much work up to here: neither this nor what it is needed for holds.
        case exhausted
    }

    /// An operand: `{property?, value?}` in JSON.
    public struct Operand: Sendable, Hashable {
        /// The property that the operand is; nil where it is a value.
        public let property: ObjectFilterProperty?
        /// The value; nil where the property has none.
        public let value: ExplainedValue?
    }
}

/// A value that was compared: `{"value": …}` in JSON or, where it is too large to be told, the beginning of its JSON text
/// and the length in bytes of all of it, `{"valueBegins": "[1,2,", "valueLength": 5000}`.
public struct ExplainedValue: Sendable, Hashable {
    /// A larger value, in bytes of its JSON text, is cut.
    public static let maximumLength = 1_024

    /// The value, or the beginning of its JSON text.
    public let value: AnyCodable
    /// The length of its JSON text in bytes.
    public let length: Int

    /// Whether the value was too large, and only its beginning is told.
    public var isCut: Bool { length > Self.maximumLength }

    init(_ view: JSONView) {
        self.init(view.bytes) { AnyCodable(view) }
    }

    /// What JSON can't say, as infinity, is told as text.
    init(_ json: AnyCodable) {
        let bytes = (try? PayloadCoder.encodeBytes(json)) ?? Array("\"\(json)\"".utf8)
        self.init(bytes[...]) { json }
    }

    private init(_ bytes: ArraySlice<UInt8>, _ value: () -> AnyCodable) {
        length = bytes.count
        guard length > Self.maximumLength else {
            self.value = value()
            return
        }
        var end = bytes.startIndex + Self.maximumLength
        // Not within a character of UTF-8.
        while end > bytes.startIndex, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        self.value = .string(String(decoding: bytes[..<end], as: UTF8.self))
    }
}

extension ObjectFilterCondition {
    /// Explains ``matches(_:)-(JSONView)``.
    public func explain(_ object: JSONView) -> ObjectFilterExplanation {
        var budgets = ExplanationBudgets(FilterBudget())
        return explain(0, isNeeded: true, &budgets) { object.value(at: $0.names) }.explanation
    }

    /// Explains ``matches(roots:)``. Unlike that, looks at all parts, also where the verdict is already clear.
    public func explain(roots: (String) -> JSONView?) -> ObjectFilterExplanation {
        var budgets = ExplanationBudgets(FilterBudget(steps: FilterBudget.maximumStepsOfPairs))
        return explain(0, isNeeded: true, &budgets) { $0.value(inRoots: roots) }.explanation
    }

    /// The verdict is nil where it needs a part that is nested too deep, or that the budget does not reach to.
    private func explain(
        _ depth: Int,
        isNeeded: Bool,
        _ budgets: inout ExplanationBudgets,
        _ lookup: FilterLookup
    ) -> (explanation: ObjectFilterExplanation, verdict: Bool?) {
        guard depth <= Self.maximumDepth else { return (.init(holds: false, part: .tooDeep), nil) }
        let exhausted = (ObjectFilterExplanation(holds: false, part: .exhausted), nil as Bool?)
        guard (try? budgets[isNeeded].spend(1)) != nil else { return exhausted }
        let part: ObjectFilterExplanation.Part
        let verdict: Bool?
        switch self {
        case .property(let property, let expression):
            guard let holds = try? expression.holds(for: property, &budgets[isNeeded], lookup) else { return exhausted }
            let value = lookup(property)
            let operands = expression.operands.map { operand -> ObjectFilterExplanation.Operand in
                switch operand {
                case .value(let value): .init(property: nil, value: .init(value))
                case .property(let property):
                    .init(property: property, value: lookup(property).map { .init($0) })
                }
            }
            part = .property(property, value.map { .init($0) }, expression.filterOperator, operands)
            verdict = holds
        case .not(let condition):
            let inner = condition.explain(depth + 1, isNeeded: isNeeded, &budgets, lookup)
            part = .not(inner.explanation)
            verdict = inner.verdict.map { !$0 }
        case .and(let conditions):
            let inner = Self.explain(conditions, until: false, depth + 1, isNeeded, &budgets, lookup)
            (part, verdict) = (.and(inner.parts), inner.verdict)
        case .or(let conditions):
            let inner = Self.explain(conditions, until: true, depth + 1, isNeeded, &budgets, lookup)
            (part, verdict) = (.or(inner.parts), inner.verdict)
        }
        return (.init(holds: verdict ?? false, part: part), verdict)
    }

    /// Explains parts, the first of which that has a certain verdict, or none, decides.
    private static func explain(
        _ conditions: [ObjectFilterCondition],
        until deciding: Bool,
        _ depth: Int,
        _ isNeeded: Bool,
        _ budgets: inout ExplanationBudgets,
        _ lookup: FilterLookup
    ) -> (parts: [ObjectFilterExplanation], verdict: Bool?) {
        var parts: [ObjectFilterExplanation] = []
        var verdict: Bool? = !deciding
        for condition in conditions {
            let isOpen = verdict == !deciding
            let inner = condition.explain(depth, isNeeded: isNeeded && isOpen, &budgets, lookup)
            if isOpen { verdict = inner.verdict }
            parts.append(inner.explanation)
        }
        return (parts, verdict)
    }
}

/// Parts that the verdict does not need are explained from a budget of their own: it must not run out where the verdict's
/// does not.
private struct ExplanationBudgets {
    private var needed, other: FilterBudget

    init(_ budget: FilterBudget) {
        needed = budget
        other = budget
    }

    subscript(isNeeded: Bool) -> FilterBudget {
        get { isNeeded ? needed : other }
        set { if isNeeded { needed = newValue } else { other = newValue } }
    }
}

extension ObjectFilterExplanation: Encodable {
    private enum Keys: String, CodingKey {
        case holds, property, `operator`, operands, and, or, not, tooDeep, exhausted
    }

    /// Encodes the tree.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(holds, forKey: .holds)
        switch part {
        case .property(let property, let value, let filterOperator, let operands):
            try container.encode(property, forKey: .property)
            try value?.encode(to: encoder)
            try container.encode("\(filterOperator)", forKey: .operator)
            try container.encode(operands, forKey: .operands)
        case .and(let parts): try container.encode(parts, forKey: .and)
        case .or(let parts): try container.encode(parts, forKey: .or)
        case .not(let inner): try container.encode(inner, forKey: .not)
        case .tooDeep: try container.encode(true, forKey: .tooDeep)
        case .exhausted: try container.encode(true, forKey: .exhausted)
        }
    }
}

extension ObjectFilterExplanation.Operand: Encodable {
    private enum Keys: String, CodingKey {
        case property
    }

    /// Encodes the operand.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(property, forKey: .property)
        try value?.encode(to: encoder)
    }
}

extension ExplainedValue: Encodable {
    private enum Keys: String, CodingKey {
        case value, valueBegins, valueLength
    }

    /// Encodes the value, or what is told of it.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(value, forKey: isCut ? .valueBegins : .value)
        if isCut { try container.encode(length, forKey: .valueLength) }
    }
}
