import TestSupport
import Testing

@testable import Coaty

/// Filters and objects of all shapes, the same ones in every run.
private struct Generator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// SplitMix64.
    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    mutating func list<Element>(_ make: (inout Generator) -> Element) -> [Element] {
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

@Suite struct FilterGenerationTests {
    private static func view(_ json: AnyCodable) throws -> JSONView {
        try JSONDocument(PayloadCoder.encodeBytes(json)).root
    }

    @Test func anyFilterHasAVerdictOnAnyObject() throws {
        var generator = Generator(seed: 1)
        var verdicts = (held: 0, failed: 0)
        for _ in 0..<5_000 {
            let condition = generator.condition()
            let object = try Self.view(generator.json())
            let holds = condition.matches(object)
            #expect(ObjectFilterCondition.not(condition).matches(object) != holds)
            #expect(condition.explain(object).holds == holds)
            let roots = { (name: String) in ["a", "b"].contains(name) ? object : nil }
            let explanation = condition.explain(roots: roots)
            #expect(explanation.holds == condition.matches(roots: roots))
            try Self.checkParts(explanation, condition) { $0.matches(roots: roots) }
            #expect(try PayloadCoder.encode(explanation).hasPrefix("{"))
            if holds { verdicts.held += 1 } else { verdicts.failed += 1 }
        }
        #expect(verdicts.held > 500 && verdicts.failed > 500)
    }

    /// Each part has the verdict of its own condition.
    private static func checkParts(
        _ explanation: ObjectFilterExplanation,
        _ condition: ObjectFilterCondition,
        _ matches: (ObjectFilterCondition) -> Bool
    ) throws {
        #expect(explanation.holds == matches(condition))
        switch (explanation.part, condition) {
        case (.property(let property, _, let filterOperator, let operands), .property(let asked, let expression)):
            #expect(property == asked && filterOperator == expression.filterOperator)
            #expect(operands.count == expression.operands.count)
        case (.and(let parts), .and(let conditions)), (.or(let parts), .or(let conditions)):
            try #require(parts.count == conditions.count)
            for (part, condition) in zip(parts, conditions) { try checkParts(part, condition, matches) }
        case (.not(let part), .not(let condition)): try checkParts(part, condition, matches)
        default: Issue.record("\(explanation.part) is not \(condition)")
        }
    }

    @Test func whatAFilterCarriesComesBackFromTheWire() throws {
        var generator = Generator(seed: 2)
        var carried = 0
        for _ in 0..<3_000 {
            let condition = generator.condition(1)
            guard let filter = try? ObjectFilter(conditions: condition) else { continue }
            let text = try PayloadCoder.encode(filter)
            let back = try ObjectFilter(JSONDocument(Array(text.utf8)).root)
            #expect(try PayloadCoder.encode(back) == text)
            let object = try Self.view(generator.json())
            #expect(back.matches(object) == filter.matches(object), "\(text)")
            carried += 1
        }
        #expect(carried > 500)
    }

    @Test func aValueEqualsAndContainsItself() throws {
        var generator = Generator(seed: 3)
        for _ in 0..<3_000 {
            let json = generator.json()
            let view = try Self.view(json)
            var budget = FilterBudget()
            #expect(try DeepComparison.isEqual(view, json, &budget), "\(json)")
            #expect(try DeepComparison.contains(view, json, &budget), "\(json)")
            #expect(try DeepComparison.isEqual(view, AnyCodable(view), &budget))
        }
    }

    /// A sort needs an order that does not contradict itself.
    @Test func stringsHaveATotalOrder() {
        var generator = Generator(seed: 4)
        for _ in 0..<5_000 {
            let (a, b, c) = (generator.string(), generator.string(), generator.string())
            let (ab, bc, ac) = (
                OrderedValue.collate(a, b).signum(), OrderedValue.collate(b, c).signum(),
                OrderedValue.collate(a, c).signum()
            )
            #expect(OrderedValue.collate(b, a).signum() == -ab, "\(a.debugDescription) \(b.debugDescription)")
            if ab == bc || bc == 0 { #expect(ac == ab, "\([a, b, c])") }
            if ab == 0 { #expect(ac == bc, "\([a, b, c])") }
        }
    }
}
