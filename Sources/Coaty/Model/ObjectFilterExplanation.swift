/// Why a condition holds for some objects, or does not: its tree, each part with the values compared and its own verdict.
///
/// In JSON `{holds, property, value?, operator, operands}` or `{holds, and | or | not}`.
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
        explain(0) { object.value(at: $0.names) }.explanation
    }

    /// Explains ``matches(roots:)``. Unlike that, looks at all parts, also where the verdict is already clear.
    public func explain(roots: (String) -> JSONView?) -> ObjectFilterExplanation {
        explain(0) { $0.value(inRoots: roots) }.explanation
    }

    /// The verdict is nil where it needs a part that is nested too deep.
    private func explain(
        _ depth: Int,
        _ lookup: (ObjectFilterProperty) -> JSONView?
    ) -> (explanation: ObjectFilterExplanation, verdict: Bool?) {
        guard depth <= Self.maximumDepth else { return (.init(holds: false, part: .tooDeep), nil) }
        let part: ObjectFilterExplanation.Part
        let verdict: Bool?
        switch self {
        case .property(let property, let expression):
            let value = lookup(property)
            let operands = expression.operands.map { operand -> ObjectFilterExplanation.Operand in
                switch operand {
                case .value(let value): .init(property: nil, value: .init(value))
                case .property(let property): .init(property: property, value: lookup(property).map { .init($0) })
                }
            }
            part = .property(property, value.map { .init($0) }, expression.filterOperator, operands)
            verdict = expression.holds(for: value, lookup)
        case .not(let condition):
            let inner = condition.explain(depth + 1, lookup)
            part = .not(inner.explanation)
            verdict = inner.verdict.map { !$0 }
        case .and(let conditions):
            let parts = conditions.map { $0.explain(depth + 1, lookup) }
            part = .and(parts.map(\.explanation))
            verdict = parts.map(\.verdict).first { $0 != true } ?? true
        case .or(let conditions):
            let parts = conditions.map { $0.explain(depth + 1, lookup) }
            part = .or(parts.map(\.explanation))
            verdict = parts.map(\.verdict).first { $0 != false } ?? false
        }
        return (.init(holds: verdict ?? false, part: part), verdict)
    }
}

extension ObjectFilterExplanation: Encodable {
    private enum Keys: String, CodingKey {
        case holds, property, `operator`, operands, and, or, not, tooDeep
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
