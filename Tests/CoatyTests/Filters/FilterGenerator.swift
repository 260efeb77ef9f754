@testable import Coaty

/// A generator of filters and objects of all shapes, which are the same in every run.
struct FilterGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// Returns the next number of SplitMix64.
    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    mutating func list<Element>(_ make: (inout FilterGenerator) -> Element) -> [Element] {
        (0..<below(4)).map { _ in make(&self) }
    }

    mutating func string() -> String {
        let pieces = [
            "a", "A", "b", "B", "ä", "a\u{308}", "ß", "z", "1", "9", "%", "_", "\\", "\n", "\0", "😀", " ", "-", ".",
            "日",
        ]
        return list { $0.pick(pieces) }.joined()
    }

    mutating func name() -> String {
        pick(["a", "b", "c", "length", "0", "1", "-1", "property", "value", "", "ä", "a.b"])
    }

    mutating func json(_ depth: Int = 3) -> AnyCodable {
        switch below(depth > 0 ? 9 : 6) {
        case 0: .null
        case 1: .bool(below(2) == 0)
        case 2: .integer(pick([0, 1, -1, .max, .min]))
        case 3: pick([.unsignedInteger(.max), .double(0.5), .double(-1e300), .double(1), .double(9.3e18)])
        case 4, 5: .string(string())
        case 6: .array(list { $0.json(depth - 1) })
        default: .object(Dictionary(list { ($0.name(), $0.json(depth - 1)) }, uniquingKeysWith: { $1 }))
        }
    }

    /// Returns an object with so many members that they are indexed, some of them with names that occur in conditions.
    mutating func wide(_ depth: Int = 1) -> AnyCodable {
        let others = (0..<20).map { ("k\($0)", AnyCodable.integer(Int64($0))) }
        let asked = (0..<8).map { _ in (name(), depth > 0 && below(3) == 0 ? wide(depth - 1) : json(2)) }
        return .object(Dictionary(others + asked, uniquingKeysWith: { $1 }))
    }

    mutating func property() -> ObjectFilterProperty {
        let names = list { $0.name() }
        return below(2) == 0 ? .init(names) : .init(names.joined(separator: "."))
    }

    mutating func operand() -> ObjectFilterOperand? {
        switch below(8) {
        case 0: nil
        case 1: .property(property())
        default: .value(json())
        }
    }

    mutating func condition(_ depth: Int = 3) -> ObjectFilterCondition {
        switch below(depth > 0 ? 6 : 3) {
        case 3: .and(list { $0.condition(depth - 1) })
        case 4: .or(list { $0.condition(depth - 1) })
        case 5: .not(condition(depth - 1))
        default:
            .property(
                property(),
                .init(filterOperator: pick(ObjectFilterOperator.allCases), op1: operand(), op2: operand())
            )
        }
    }
}
