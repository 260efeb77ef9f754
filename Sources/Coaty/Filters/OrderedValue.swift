import Foundation

/// A value as ordering operators and orderings compare it.
///
/// The rules are those of ECMAScript: null is 0, false is 0, true is 1, a string that is compared with a number is
/// converted to a number, and an array of one element is compared like that element. Objects and other arrays are
/// neither less nor greater than any value.
enum OrderedValue: Sendable {
    case number(Scalar)
    case text(String)

    /// Creates an ordered value from a value of an object.
    init?(_ value: FilterValue, _ budget: inout WorkBudget) throws(WorkExceeded) {
        var value = value
        while value.view.kind == .array {
            try budget.spend()
            var elements = value.view.elements
            guard let element = elements.next(), elements.next() == nil else { return nil }
            value = FilterValue(element)
        }
        if value.view.kind == .object { return nil }
        try budget.spend(bytes: value.view.bytes.count)
        guard let scalar = value.scalar else { return nil }
        self.init(scalar)
    }

    init?(_ operand: CompiledLeaf.Operand) {
        guard case .value(let constant) = operand else { return nil }
        self.init(constant)
    }

    private init?(_ constant: Constant) {
        switch constant {
        case .scalar(let scalar): self.init(scalar)
        case .array(let elements):
            guard elements.count == 1 else { return nil }
            self.init(elements[0])
        case .object: return nil
        }
    }

    private init(_ scalar: Scalar) {
        switch scalar {
        case .null: self = .number(.integer(0))
        case .bool(let bool): self = .number(.integer(bool ? 1 : 0))
        case .integer, .unsignedInteger, .double: self = .number(scalar)
        case .string(let name): self = .text(name.text)
        }
    }

    /// Returns a number below 0 if this value comes first, above 0 if the other does; nil if the values are not
    /// comparable.
    func compare(_ other: OrderedValue, _ budget: inout WorkBudget) throws(WorkExceeded) -> Int? {
        switch (self, other) {
        case (.number(let left), .number(let right)): return Scalar.compare(left, right)
        case (.text(let left), .text(let right)):
            // The cost of a collation: nearly a microsecond, and 6 ns for each byte.
            try budget.spend(32 + (left.utf8.count + right.utf8.count) / 8)
            return Self.collate(left, right)
        case (.text(let text), .number(let right)):
            try budget.spend(bytes: text.utf8.count)
            return Self.number(text).flatMap { Scalar.compare(Scalar($0), right) }
        case (.number(let left), .text(let text)):
            try budget.spend(bytes: text.utf8.count)
            return Self.number(text).flatMap { Scalar.compare(left, Scalar($0)) }
        }
    }

    private static func number(_ text: String) -> Double? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
        return text.isEmpty ? 0 : Double(text)
    }

    /// The root locale, so that verdicts do not depend on the machine.
    private static let rootLocale = Locale(identifier: "")

    /// Compares strings like a default collator: `a` < `A` < `ä` < `b`.
    static func collate(_ left: String, _ right: String) -> Int {
        left.utf8.elementsEqual(right.utf8) ? 0 : left.compare(right, locale: rootLocale).rawValue
    }

    /// The number of bytes that the value references.
    var footprint: Int {
        if case .text(let text) = self { WireName(text).footprint } else { 0 }
    }
}
