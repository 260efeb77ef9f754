import Foundation

@testable import Coaty

/// A plain evaluation of conditions, without budget, index or compilation, as a reference for the optimized one.
struct ReferenceEvaluation {
    /// Returns the value of a property; nil if there is none.
    let lookup: ([String]) -> AnyCodable?
    /// Whether missing properties and unsuitable types are unknown (`truth`), or the condition does not hold (`holds`).
    var isThreeValued = false
    /// Roots whose missing properties may exist elsewhere.
    var openRoots: Set<String> = []
    /// The roots that have an object; nil if there is only one object.
    var roots: Set<String>?

    func verdict(_ condition: ObjectFilterCondition) -> Bool? {
        switch condition {
        case .property(let property, let expression): return leaf(property.names, expression)
        case .not(let condition): return verdict(condition).map { !$0 }
        case .and(let list):
            let verdicts = list.map(verdict)
            return verdicts.contains(false) ? false : verdicts.contains(nil) ? nil : true
        case .or(let list):
            let verdicts = list.map(verdict)
            return verdicts.contains(true) ? true : verdicts.contains(nil) ? nil : false
        }
    }

    private func leaf(_ names: [String], _ expression: ObjectFilterExpression) -> Bool? {
        let asked = expression.filterOperator
        if isThreeValued, let roots, !roots.contains(names.first ?? "") { return nil }
        let value = lookup(names)
        if asked == .Exists || asked == .NotExists {
            if isThreeValued, value == nil, openRoots.contains(names.first ?? "") { return nil }
            return (value != nil) == (asked == .Exists)
        }
        guard let value else { return isThreeValued ? nil : false }
        guard let first = operand(expression.firstOperand) else {
            return isThreeValued ? nil : asked == .NotEquals || asked == .NotContains
        }
        return compare(value, asked, first, operand(expression.secondOperand)) ?? (isThreeValued ? nil : false)
    }

    private func operand(_ operand: ObjectFilterOperand?) -> AnyCodable? {
        switch operand {
        case .value(let value): value
        case .property(let property): lookup(property.names)
        case nil: nil
        }
    }

    private func compare(
        _ value: AnyCodable,
        _ asked: ObjectFilterOperator,
        _ first: AnyCodable,
        _ second: AnyCodable?
    ) -> Bool? {
        switch asked {
        case .LessThan: return Self.order(value, first).map { $0 < 0 }
        case .LessThanOrEqual: return Self.order(value, first).map { $0 <= 0 }
        case .GreaterThan: return Self.order(value, first).map { $0 > 0 }
        case .GreaterThanOrEqual: return Self.order(value, first).map { $0 >= 0 }
        case .Between, .NotBetween:
            guard let second, let order = Self.order(first, second),
                let toLower = Self.order(value, order > 0 ? second : first),
                let toUpper = Self.order(value, order > 0 ? first : second)
            else { return nil }
            return (toLower >= 0 && toUpper <= 0) == (asked == .Between)
        case .Like:
            guard case .string(let text) = value, case .string(let pattern) = first else { return nil }
            return Self.isLike(Array(text.utf16)[...], Array(pattern.utf16)[...])
        case .Equals: return Self.isEqual(value, first)
        case .NotEquals: return !Self.isEqual(value, first)
        case .Contains, .NotContains:
            if case .object = value, first == .null { return nil }
            return Self.contains(value, first) == (asked == .Contains)
        case .In, .NotIn:
            guard case .array(let values) = first else { return nil }
            return values.contains { Self.isEqual(value, $0) } == (asked == .In)
        case .Exists, .NotExists: return nil
        }
    }

    static func isEqual(_ left: AnyCodable, _ right: AnyCodable) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.array(let left), .array(let right)):
            left.count == right.count && zip(left, right).allSatisfy { isEqual($0, $1) }
        case (.object(let left), .object(let right)):
            left.count == right.count
                && right.allSatisfy { key, value in
                    left.first { $0.key.utf8.elementsEqual(key.utf8) }.map { isEqual($0.value, value) } ?? false
                }
        default: number(left) != nil && number(right) != nil && compareNumbers(left, right) == 0
        }
    }

    private static func contains(_ left: AnyCodable, _ right: AnyCodable, isTopLevel: Bool = true) -> Bool {
        switch (left, right) {
        case (.array(let left), .array(let right)):
            right.allSatisfy { value in left.contains { contains($0, value, isTopLevel: false) } }
        case (.array, .object): false
        case (.array(let left), _): isTopLevel && left.contains { isEqual($0, right) }
        case (.object(let left), .object(let right)):
            right.allSatisfy { key, value in
                left.first { $0.key.utf8.elementsEqual(key.utf8) }
                    .map { contains($0.value, value, isTopLevel: false) } ?? false
            }
        default: isEqual(left, right)
        }
    }

    /// Returns a number as a decimal, which represents all 64-bit integers and the doubles of the tests exactly.
    private static func number(_ json: AnyCodable) -> Decimal? {
        switch json {
        case .integer(let integer): Decimal(integer)
        case .unsignedInteger(let integer): Decimal(integer)
        case .double(let double): Decimal(double)
        default: nil
        }
    }

    private static func compareNumbers(_ left: AnyCodable, _ right: AnyCodable) -> Int? {
        // Doubles that a decimal can't represent.
        func isHuge(_ json: AnyCodable) -> Double? {
            if case .double(let double) = json, abs(double) > 1e100 { double } else { nil }
        }
        if isHuge(left) != nil || isHuge(right) != nil {
            let (left, right) = (isHuge(left) ?? 0, isHuge(right) ?? 0)
            return left < right ? -1 : left > right ? 1 : 0
        }
        guard let left = number(left), let right = number(right) else { return nil }
        return left < right ? -1 : left > right ? 1 : 0
    }

    private static func order(_ left: AnyCodable, _ right: AnyCodable) -> Int? {
        guard let left = ordered(left), let right = ordered(right) else { return nil }
        switch (left, right) {
        case (.string(let left), .string(let right)): return OrderedValue.collate(left, right)
        case (.string(let text), _): return spelled(text).flatMap { compareNumbers($0, right) }
        case (_, .string(let text)): return spelled(text).flatMap { compareNumbers(left, $0) }
        default: return compareNumbers(left, right)
        }
    }

    private static func ordered(_ json: AnyCodable) -> AnyCodable? {
        switch json {
        case .null: .integer(0)
        case .bool(let bool): .integer(bool ? 1 : 0)
        case .array(let elements): elements.count == 1 ? ordered(elements[0]) : nil
        case .object: nil
        default: json
        }
    }

    private static func spelled(_ text: String) -> AnyCodable? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
        return text.isEmpty ? .integer(0) : Double(text).map { .double($0) }
    }

    private static func isLike(_ text: ArraySlice<UInt16>, _ pattern: ArraySlice<UInt16>) -> Bool {
        guard let unit = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch unit {
        case 0x25:
            if isLike(text, rest) { return true }
            return text.first.map { !isLineBreak($0) } ?? false && isLike(text.dropFirst(), pattern)
        case 0x5F: return text.first.map { !isLineBreak($0) } ?? false && isLike(text.dropFirst(), rest)
        case 0x5C:
            guard let escaped = rest.first else { return text.isEmpty }
            return text.first == escaped && isLike(text.dropFirst(), rest.dropFirst())
        default: return text.first == unit && isLike(text.dropFirst(), rest)
        }
    }

    private static func isLineBreak(_ unit: UInt16) -> Bool { [0x0A, 0x0D, 0x2028, 0x2029].contains(unit) }

    /// Returns the value at the end of a path.
    static func value(_ json: AnyCodable, _ path: some Collection<String>) -> AnyCodable? {
        guard let name = path.first else { return json }
        switch json {
        case .object(let members):
            return members.first { $0.key.utf8.elementsEqual(name.utf8) }.flatMap { value($0.value, path.dropFirst()) }
        case .array(let elements):
            if name == "length" { return value(.integer(Int64(elements.count)), path.dropFirst()) }
            return elements.enumerated().first { "\($0.offset)" == name }.flatMap {
                value($0.element, path.dropFirst())
            }
        default: return nil
        }
    }
}
