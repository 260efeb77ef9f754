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
        /// Nested deeper than ``ObjectFilterCondition/maximumDepth``: neither it nor its opposite holds.
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
        explain(object, steps: Self.maximumSteps)
    }

    func explain(_ object: JSONView, steps: Int) -> ObjectFilterExplanation {
        var explainer = ConditionExplainer(steps: steps) { $0.value(in: object) }
        return explainer.explain(self, CompiledCondition(self).part, isNeeded: true).explanation
    }

    /// Explains ``matches(roots:)``. Unlike that, looks at all parts, also where the verdict is already clear.
    public func explain(roots: (String) -> JSONView?) -> ObjectFilterExplanation {
        withoutActuallyEscaping(roots) { roots in
            var explainer = ConditionExplainer(steps: Self.maximumStepsOfPairs) { $0.value(inRoots: roots) }
            return explainer.explain(self, CompiledCondition(self).part, isNeeded: true).explanation
        }
    }
}

/// Judges all parts of a condition as ``CompiledCondition`` does, and keeps what it finds.
private struct ConditionExplainer {
    let lookup: (PropertyPath) -> JSONView?
    /// The budget of the verdict.
    private var needed: WorkBudget
    /// The budget of parts that the verdict does not need: they must not take from its own.
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

    /// The verdict is nil where it is unknown, or the budget does not reach to it.
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

    /// Explains parts, of which the first that is `deciding` decides. The verdict needs none after it, nor after the budget
    /// has been exceeded.
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

    /// Encodes the value, or what is told of it.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(value, forKey: isCut ? .valueBegins : .value)
        if isCut { try container.encode(length, forKey: .valueLength) }
    }
}
