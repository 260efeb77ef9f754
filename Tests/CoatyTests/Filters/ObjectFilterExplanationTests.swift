import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct ObjectFilterExplanationTests {
    private static func json(_ text: String) throws -> JSONView { try JSONDocument(Array(text.utf8)).root }

    @Test func anExplanationHasTheValuesCompared() throws {
        let condition: ObjectFilterCondition = try PayloadCoder.decode(
            from: """
                {"and":[
                    ["actorNode.characteristics.state",["Equals",{"property":"context.operatingState"}]],
                    {"not":["source.rate",["Between",{"property":"context.missing"},9]]},
                    {"or":[["source.missing",["Exists"]]]}
                ]}
                """
        )
        let objects = try [
            "source": Self.json(#"{"rate":5}"#),
            "actorNode": Self.json(#"{"characteristics":{"state":"normal"}}"#),
            "context": Self.json(#"{"operatingState":"emergency"}"#),
        ]
        #expect(
            try PayloadCoder.encode(condition.explain { objects[$0] }) == #"{"and":["#
                + #"{"holds":false,"operands":[{"property":"context.operatingState","value":"emergency"}],"#
                + #""operator":"Equals","property":"actorNode.characteristics.state","value":"normal"},"#
                + #"{"holds":true,"not":{"holds":false,"operands":[{"property":"context.missing"},{"value":9}],"#
                + #""operator":"Between","property":"source.rate","value":5}},"#
                + #"{"holds":false,"or":[{"holds":false,"operands":[],"operator":"Exists","property":"source.missing"}]}"#
                + #"],"holds":false}"#
        )
    }

    @Test func aNullIsAValue() throws {
        let explanation = try ObjectFilterCondition.property("a", .equals(nil)).explain(Self.json(#"{"a":null}"#))
        #expect(
            try PayloadCoder.encode(explanation)
                == #"{"holds":true,"operands":[{"value":null}],"operator":"Equals","property":"a","value":null}"#
        )
    }

    @Test func aLargeValueIsCutBetweenCharacters() throws {
        let limit = ExplainedValue.maximumLength
        func value(_ text: String) throws -> ExplainedValue { ExplainedValue(try Self.json("\"\(text)\"")) }
        let longest = String(repeating: "a", count: limit - 2)
        #expect(try !value(longest).isCut)
        #expect(try PayloadCoder.encode(value(longest)) == #"{"value":"\#(longest)"}"#)
        #expect(try value(longest + "a").value == .string("\"\(longest)a"))
        for prefix in ["", "a", "aa", "aaa"] {
            let cut = try value(prefix + String(repeating: "😀", count: limit))
            #expect(cut.isCut && cut.length == limit * 4 + 2 + prefix.utf8.count)
            guard case .string(let text) = cut.value else {
                Issue.record("no text")
                return
            }
            #expect(text.hasPrefix("\"\(prefix)😀") && text.hasSuffix("😀"))
            #expect(text.utf8.count <= limit && text.utf8.count > limit - 4)
        }
        let list = ExplainedValue(.array(.init(repeating: 1, count: limit)))
        #expect(
            try PayloadCoder.encode(list).hasSuffix(#"1,1","valueLength":\#(2 * limit + 1)}"#)
                && PayloadCoder.encode(list).hasPrefix(#"{"valueBegins":"[1,1,"#)
        )
    }

    @Test func tooDeepNestingIsExplainedAsInMatches() throws {
        let object = try Self.json("{}")
        var deep = ObjectFilterCondition.and([])
        for _ in 0...ObjectFilterCondition.maximumDepth { deep = .not(deep) }
        for condition in [deep, .not(deep), .or([deep, .and([])]), .or([.and([]), deep]), .and([.or([]), deep])] {
            let explanation = condition.explain(object)
            #expect(explanation.holds == condition.matches(object))
            #expect(try PayloadCoder.encode(explanation).contains(#"{"holds":false,"tooDeep":true}"#))
        }
        #expect(ObjectFilterCondition.or([.and([]), deep]).explain(object).holds)
    }
}

@Suite(.exclusive) struct WorkBudgetTests {
    private static func json(_ text: String) throws -> JSONView { try JSONDocument(Array(text.utf8)).root }

    /// Each expression is small, but takes far more steps than the limit for a pair.
    @Test(arguments: [
        ObjectFilterExpression(filterOperator: .NotContains, op1: .property("context.list")),
        .like("%" + String(repeating: "_", count: 1_000) + "b"),
        .lessThan(.string(String(repeating: "a", count: 200_000))),
    ])
    func tooExpensivePairConditionAndItsNegationDoNotHold(expression: ObjectFilterExpression) throws {
        let list = "[" + (0..<2_000).map(String.init).joined(separator: ",") + "]"
        let context = try Self.json(#"{"list":\#(list),"text":"\#(String(repeating: "a", count: 10_000))"}"#)
        let property: ObjectFilterProperty = expression.filterOperator == .NotContains ? "context.list" : "context.text"
        let leaf = ObjectFilterCondition.property(property, expression)
        for condition in [leaf, .not(leaf), .or([leaf, .and([])]), .or([.not(leaf), .and([])])] {
            #expect(!condition.matches { _ in context })
            let explanation = condition.explain { _ in context }
            #expect(!explanation.holds)
            #expect(try PayloadCoder.encode(explanation).contains(#"{"exhausted":true,"holds":false}"#))
        }
        let decided = ObjectFilterCondition.or([.and([]), leaf])
        #expect(decided.matches { _ in context } && decided.explain { _ in context }.holds)
    }

    @Test func budgetCoversTheWholeCondition() throws {
        let leaf = ObjectFilterCondition.property("a.b", .exists())
        let object = try Self.json(#"{"b":1}"#)
        // Each leaf takes three steps: the leaf itself and the two names of its path. The conjunction takes one more.
        let many = Array(repeating: leaf, count: ObjectFilterCondition.maximumStepsOfPairs / 3)
        #expect(ObjectFilterCondition.and(many).matches { _ in object })
        #expect(!ObjectFilterCondition.and(many + [leaf]).matches { _ in object })
        #expect(ObjectFilterCondition.and(many.map { _ in .property("b", .exists()) }).matches(object))
    }

    @Test func severalObjectsShareABudget() throws {
        let objects = try Self.json(#"[{"a":0},{"a":0},{"a":1}]"#)
        let condition = ObjectFilterCondition.property("a", .equals(1))
        func holds(_ condition: ObjectFilterCondition, _ count: Int, steps: Int) throws -> Bool {
            var budget = WorkBudget(steps: steps)
            return try CompiledCondition(condition).holds(forOneOf: objects.elements.prefix(count), &budget)
        }
        let needed = try #require((1...100).first { (try? holds(condition, 3, steps: $0)) == true })
        let first = try #require((1...100).first { (try? holds(condition, 1, steps: $0)) != nil })
        #expect(needed == 3 * first)
        #expect(throws: WorkExceeded.self) { try holds(condition, 3, steps: needed - 1) }
        #expect(try !holds(condition, 2, steps: needed))
        #expect(try holds(.not(condition), 3, steps: needed - 1))
        #expect(try !holds(condition, 0, steps: 0))
    }
}
