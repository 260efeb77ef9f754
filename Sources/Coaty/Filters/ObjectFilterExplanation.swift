/// The reason why a condition holds for some objects or not: its tree, where each part has its verdict and the compared
/// values.
///
/// In JSON, `{holds, property, value?, operator, operands}` or `{holds, and | or | not | tooDeep | exhausted}`.
public struct ObjectFilterExplanation: Sendable, Hashable {
    /// Whether this part holds.
    public let holds: Bool
    /// The kind and content of the part.
    public let part: Part

    /// The kind and content of a part.
    public indirect enum Part: Sendable, Hashable {
        /// A property, its value if it has one, and the operator with its operands.
        case property(ObjectFilterProperty, ExplainedValue?, ObjectFilterOperator, [Operand])
        /// All parts hold.
        case and([ObjectFilterExplanation])
        /// At least one part holds.
        case or([ObjectFilterExplanation])
        /// The inner part does not hold.
        case not(ObjectFilterExplanation)
        /// Nested deeper than ``ObjectFilterCondition/maximumDepth``: neither the part nor its opposite holds.
        case tooDeep
        /// The condition exceeded the work budget before or in this part: neither the part nor the parts that depend on
        /// it hold.
        case exhausted
    }

    /// An operand: `{property?, value?}` in JSON.
    public struct Operand: Sendable, Hashable {
        /// The property that the operand names; nil if it is a value.
        public let property: ObjectFilterProperty?
        /// The value; nil if the property has none.
        public let value: ExplainedValue?
    }
}

/// A compared value: in JSON, `{"value": …}`. If it is too large, the beginning of its JSON text and the length of the
/// whole text in bytes: `{"valueBegins": "[1,2,", "valueLength": 5000}`.
public struct ExplainedValue: Sendable, Hashable {
    /// Maximum size of a complete value, in bytes of its JSON text. Larger values are cut.
    public static let maximumLength = 1_024

    /// The value, or the beginning of its JSON text.
    public let value: AnyCodable
    /// The length of its JSON text in bytes.
    public let length: Int

    /// Whether the value is too large, and only its beginning is included.
    public var isCut: Bool { length > Self.maximumLength }

    init(_ view: JSONView) {
        self.init(view.bytes) { AnyCodable(view) }
    }

    /// Values that JSON can't represent, such as infinity, become text.
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
        // Do not cut within a UTF-8 character.
        while end > bytes.startIndex, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        self.value = .string(String(decoding: bytes[..<end], as: UTF8.self))
    }
}

extension ObjectFilterCondition {
    /// Explains ``matches(_:)-(JSONView)``.
    public func explain(_ object: JSONView) -> ObjectFilterExplanation {
        explain(object, steps: Self.maximumSteps)
    }

    func explain(_ object: JSONView, steps: Int) -> ObjectFilterExplanation {
        var explainer = ConditionExplainer(steps: steps) { $0.value(in: object) }
        return explainer.explain(self, CompiledCondition(self).part, isNeeded: true).explanation
    }

    /// Explains ``matches(roots:)``. Unlike it, evaluates all parts, even after the verdict is known.
    public func explain(roots: (String) -> JSONView?) -> ObjectFilterExplanation {
        withoutActuallyEscaping(roots) { roots in
            var explainer = ConditionExplainer(steps: Self.maximumStepsOfPairs) { $0.value(inRoots: roots) }
            return explainer.explain(self, CompiledCondition(self).part, isNeeded: true).explanation
        }
    }
}

/// Evaluates all parts of a condition like ``CompiledCondition``, and records the results.
private struct ConditionExplainer {
    let lookup: (PropertyPath) -> JSONView?
    /// The budget of the parts that decide the verdict.
    private var needed: WorkBudget
    /// The budget of the other parts, which must not use the budget of the verdict.
    private var other: WorkBudget

    init(steps: Int, lookup: @escaping (PropertyPath) -> JSONView?) {
        self.lookup = lookup
        needed = WorkBudget(steps: steps)
        other = needed
    }

    private subscript(isNeeded: Bool) -> WorkBudget {
        get { isNeeded ? needed : other }
        set { if isNeeded { needed = newValue } else { other = newValue } }
    }

    /// Explains a condition. The verdict is nil if it is unknown, or the budget is exceeded.
    mutating func explain(
        _ condition: ObjectFilterCondition,
        _ part: CompiledCondition.Part,
        isNeeded: Bool
    ) -> (explanation: ObjectFilterExplanation, verdict: Bool?) {
        let explained: ObjectFilterExplanation.Part
        let verdict: Bool?
        do throws(WorkExceeded) {
            switch (condition, part) {
            case (.property(let property, let expression), .leaf(let leaf)):
                verdict = try leaf.holds(&self[isNeeded]) { [lookup] in lookup($0).map { FilterValue($0) } }
                explained = .property(
                    property,
                    lookup(leaf.path).map { .init($0) },
                    expression.filterOperator,
                    expression.operands.map(operand)
                )
            case (.not(let condition), .not(let part)):
                try self[isNeeded].spend()
                let inner = explain(condition, part, isNeeded: isNeeded)
                explained = .not(inner.explanation)
                verdict = inner.verdict.map { !$0 }
            case (.and(let conditions), .and(let parts)):
                try self[isNeeded].spend()
                let inner = explain(conditions, parts, until: false, isNeeded)
                (explained, verdict) = (.and(inner.parts), inner.verdict)
            case (.or(let conditions), .or(let parts)):
                try self[isNeeded].spend()
                let inner = explain(conditions, parts, until: true, isNeeded)
                (explained, verdict) = (.or(inner.parts), inner.verdict)
            default: (explained, verdict) = (.tooDeep, nil)
            }
        } catch {
            (explained, verdict) = (.exhausted, nil)
        }
        return (.init(holds: verdict ?? false, part: explained), verdict)
    }

    /// Explains parts, where the first part that is `deciding` decides. The verdict does not depend on parts after it,
    /// nor on parts after the budget is exceeded.
    private mutating func explain(
        _ conditions: [ObjectFilterCondition],
        _ parts: [CompiledCondition.Part],
        until deciding: Bool,
        _ isNeeded: Bool
    ) -> (parts: [ObjectFilterExplanation], verdict: Bool?) {
        var explanations: [ObjectFilterExplanation] = []
        var verdict: Bool? = !deciding
        for (condition, part) in zip(conditions, parts) {
            let isOpen = verdict != deciding && self[isNeeded].left >= 0
            let inner = explain(condition, part, isNeeded: isNeeded && isOpen)
            if isOpen, inner.verdict != !deciding { verdict = inner.verdict }
            explanations.append(inner.explanation)
        }
        return (explanations, verdict)
    }

    private func operand(_ operand: ObjectFilterOperand) -> ObjectFilterExplanation.Operand {
        switch operand {
        case .value(let value): .init(property: nil, value: .init(value))
        case .property(let property):
            .init(property: property, value: lookup(PropertyPath(property)).map { .init($0) })
        }
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

    /// Encodes the value, or its beginning and length.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(value, forKey: isCut ? .valueBegins : .value)
        if isCut { try container.encode(length, forKey: .valueLength) }
    }
}
