import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct FilterGenerationTests {
    private static func view(_ json: AnyCodable) throws -> JSONView {
        try JSONDocument(encoding: json).root
    }

    @Test func anyFilterHasAVerdictOnAnyObject() throws {
        var generator = FilterGenerator(seed: 1)
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

    @Test func explanationsCostTheSameStepsAsVerdicts() throws {
        var generator = FilterGenerator(seed: 5)
        var exceeded = 0
        for _ in 0..<5_000 {
            let condition = ObjectFilterCondition.or([.and(generator.list { $0.condition() }), generator.condition()])
            let object = try Self.view(generator.json())
            let steps = 1 + generator.below(30)
            var budget = WorkBudget(steps: steps)
            let holds = try? CompiledCondition(condition).holds(for: object, &budget)
            let explanation = condition.explain(object, steps: steps)
            #expect(explanation.holds == (holds ?? false), "\(condition)")
            guard holds == nil else { continue }
            exceeded += 1
            #expect(try PayloadCoder.encode(explanation).contains(#"{"exhausted":true,"holds":false}"#))
        }
        #expect(exceeded > 500)
    }

    /// Checks that each part has the verdict of its condition.
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

    @Test func filtersRoundTrip() throws {
        var generator = FilterGenerator(seed: 2)
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
        var generator = FilterGenerator(seed: 3)
        for _ in 0..<3_000 {
            let json = generator.json()
            let view = try Self.view(json)
            var budget = WorkBudget(steps: 100_000)
            #expect(try DeepComparison.isEqual(FilterValue(view), Constant(json), &budget), "\(json)")
            #expect(try DeepComparison.contains(view, Constant(json), &budget), "\(json)")
            #expect(try DeepComparison.isEqual(FilterValue(view), Constant(view), &budget))
        }
    }

    /// Sorting requires a consistent total order.
    @Test func stringsHaveATotalOrder() {
        var generator = FilterGenerator(seed: 4)
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
