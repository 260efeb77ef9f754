import Foundation

/// A value as the ordering operators and orderings see it.
///
/// As ECMAScript has it: null is 0, false 0, true 1, a string beside a number is the number it spells, and an array of one
/// element is like that element. Objects and other arrays are neither less nor greater than anything.
enum OrderedValue {
    case number(AnyCodable)
    case text(String)

    init?(_ view: JSONView) {
        switch view.kind {
        case .array:
            var elements = view.elements
            guard let element = elements.next(), elements.next() == nil else { return nil }
            self.init(element)
        case .object: return nil
        default: self.init(AnyCodable(view))
        }
    }

    init?(_ json: AnyCodable) {
        switch json {
        case .null: self = .number(.integer(0))
        case .bool(let bool): self = .number(.integer(bool ? 1 : 0))
        case .integer, .unsignedInteger, .double: self = .number(json)
        case .string(let text): self = .text(text)
        case .array(let elements):
            guard elements.count == 1 else { return nil }
            self.init(elements[0])
        case .object: return nil
        }
    }

    /// Below 0 where this comes first, above 0 where the other does; nil where neither can be said.
    func compare(_ other: OrderedValue) -> Int? {
        switch (self, other) {
        case (.number(let left), .number(let right)): JSONNumbers.compare(left, right)
        case (.text(let left), .text(let right)): Self.collate(left, right)
        case (.text(let text), .number(let right)):
            Self.number(text).flatMap { JSONNumbers.compare(.double($0), right) }
        case (.number(let left), .text(let text)): Self.number(text).flatMap { JSONNumbers.compare(left, .double($0)) }
        }
    }

    private static func number(_ text: String) -> Double? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
        return text.isEmpty ? 0 : Double(text)
    }

    /// The root locale, so that a verdict does not depend on the machine.
    private static let rootLocale = Locale(identifier: "")

    /// Compares strings as a default collator does: `a` < `A` < `ä` < `b`.
    static func collate(_ left: String, _ right: String) -> Int {
        left.utf8.elementsEqual(right.utf8) ? 0 : left.compare(right, locale: rootLocale).rawValue
    }
}

/// Numbers by value: 64-bit integers exactly, also beside doubles.
enum JSONNumbers {
    /// nil where one is no number.
    static func compare(_ left: AnyCodable, _ right: AnyCodable) -> Int? {
        switch (integer(left), integer(right)) {
        case (let left?, let right?): sign(left, right)
        case (let left?, nil): double(right).flatMap { compare(left, $0) }
        case (nil, let right?): double(left).flatMap { compare(right, $0) }.map { -$0 }
        case (nil, nil): double(left).flatMap { left in double(right).map { sign(left, $0) } }
        }
    }

    private static func compare(_ integer: Int128, _ double: Double) -> Int {
        guard abs(double) < 0x1p100 else { return double < 0 ? 1 : -1 }
        let floor = double.rounded(.down)
        let order = sign(integer, Int128(floor))
        return order != 0 ? order : double > floor ? -1 : 0
    }

    private static func sign<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
        left < right ? -1 : left > right ? 1 : 0
    }

    private static func integer(_ json: AnyCodable) -> Int128? {
        switch json {
        case .integer(let integer): Int128(integer)
        case .unsignedInteger(let integer): Int128(integer)
        default: nil
        }
    }

    private static func double(_ json: AnyCodable) -> Double? {
        guard case .double(let double) = json, !double.isNaN else { return nil }
        return double
    }
}

extension JSONView {
    /// The value at the end of a path, as that of ``ObjectFilterProperty/names``; nil where there is none.
    package func value(at path: some Sequence<String>) -> JSONView? {
        var view = self
        for name in path {
            if view.kind == .array {
                guard let element = view.element(named: name) else { return nil }
                view = element
            } else {
                guard let index = view.document.member(named: name, of: view.index) else { return nil }
                // Not a new view: it would retain the document.
                view.index = index
            }
        }
        return view
    }

    private func element(named name: String) -> JSONView? {
        if name == "length" {
            let count = elements.reduce(0) { count, _ in count + 1 }
            return (try? JSONDocument(Array("\(count)".utf8)))?.root
        }
        guard let index = Int(name), "\(index)" == name, index >= 0 else { return nil }
        return elements.dropFirst(index).first { _ in true }
    }
}
