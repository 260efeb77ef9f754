import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct CompiledConditionTests {
    private static func view(_ json: AnyCodable) throws -> JSONView {
        try JSONDocument(encoding: json).root
    }

    private static func condition(_ text: String) throws -> CompiledCondition {
        try CompiledCondition(ObjectFilterCondition(JSONDocument(Array(text.utf8)).root))
    }

    /// Evaluates 50,000 objects in both logics, with and without a cache.
    @Test func verdictsEqualTheReferenceEvaluation() throws {
        var generator = FilterGenerator(seed: 11)
        let objects = try (0..<500).map { index in
            let json = index % 3 == 0 ? generator.wide() : generator.json()
            return (json: json, view: try Self.view(json))
        }
        var verdicts: [Bool?: Int] = [:]
        for _ in 0..<5_000 {
            let condition = generator.condition()
            let compiled = CompiledCondition(condition)
            var cache = ValueCache()
            for _ in 0..<10 {
                let object = generator.pick(objects)
                var budget = WorkBudget(steps: 1_000_000)
                let holds = ReferenceEvaluation { ReferenceEvaluation.value(object.json, $0) }.verdict(condition)
                #expect(try compiled.holds(for: object.view, &budget) == holds, "\(condition) \(object.json)")
                #expect(try compiled.holds(for: object.view, &cache, &budget) == holds, "\(condition) \(object.json)")

                let roots = ["a": object, "b": object]
                let evaluation = ReferenceEvaluation(
                    lookup: { names in
                        names.first.flatMap { roots[$0] }
                            .flatMap { ReferenceEvaluation.value($0.json, names.dropFirst()) }
                    },
                    isThreeValued: true,
                    openRoots: ["b"],
                    roots: ["a", "b"]
                )
                let truth = try compiled.truth(openRoots: ["b"], roots: { roots[$0]?.view }, &budget)
                #expect(truth == evaluation.verdict(condition), "\(condition) \(object.json)")
                verdicts[truth, default: 0] += 1
                verdicts[holds, default: 0] += 1
            }
        }
        #expect(verdicts.count == 3 && verdicts.values.allSatisfy { $0 > 5_000 }, "\(verdicts)")
    }

    @Test func equalConditionsAreEqualByteByByte() throws {
        let composed = try Self.condition(#"["p",["Equals","ä"]]"#)
        #expect(try composed == Self.condition(#"["p",["Equals","\u00e4"]]"#))
        #expect(try composed != Self.condition("[\"p\",[\"Equals\",\"a\u{308}\"]]"))
        #expect(try Self.condition(#"["ä",["Exists"]]"#) != Self.condition("[\"a\u{308}\",[\"Exists\"]]"))
        #expect(try Self.condition(#"["p",["In",[1,"x"]]]"#) == Self.condition(#"["p",["In",["x",1.0]]]"#))
        let object = try Self.condition(#"["p",["Equals",{"a":1,"b":2}]]"#)
        #expect(try object.hashValue == Self.condition(#"["p",["Equals",{"b":2,"a":1e0}]]"#).hashValue)
    }

    @Test func costDoesNotDependOnObjectWidth() throws {
        let members = (0..<100_000).map { #""\u00e4\#($0)":\#($0)"# }.joined(separator: ",")
        let wide = try JSONDocument(Array("{\(members)}".utf8)).root
        let small = try JSONDocument(Array(#"{"ä7":7}"#.utf8)).root
        for text in [#"["ä7",["Equals",7]]"#, #"["ä7",["Exists"]]"#] {
            var left: [Int] = []
            for object in [wide, small] {
                var budget = WorkBudget(steps: 1_000)
                #expect(try Self.condition(text).holds(for: object, &budget))
                left.append(budget.left)
            }
            #expect(left[0] == left[1] && left[0] > 990)
        }
    }

    /// Cached values cost as many steps as values that are looked up.
    @Test func cachedValuesCostTheSameSteps() throws {
        let condition = try Self.condition(#"{"and":[["a.b",["In",[1,2]]],["a.b",["LessThan",3]]]}"#)
        let object = try JSONDocument(Array(#"{"a":{"b":1}}"#.utf8)).root
        var cache = ValueCache()
        var left: Set<Int> = []
        for _ in 0..<3 {
            var budget = WorkBudget(steps: 100)
            #expect(try condition.holds(for: object, &cache, &budget))
            left.insert(budget.left)
        }
        #expect(left.count == 1)
    }

    @Test func cacheCanBeReusedForOtherObjects() throws {
        let condition = try Self.condition(#"{"and":[["b",["Exists"]],["a",["Equals",1]]]}"#)
        var cache = ValueCache()
        var budget = WorkBudget(steps: 1_000)
        let objects = try JSONDocument(Array(#"[{"a":1,"b":0},{"a":2,"b":0},{},{"a":1,"b":0}]"#.utf8)).root
        let verdicts = try objects.elements.map { try condition.holds(for: $0, &cache, &budget) }
        #expect(verdicts == [true, false, false, true])
        let other = try JSONDocument(Array(#"[{"a":2,"b":0}]"#.utf8)).root
        #expect(try other.elements.map { try condition.holds(for: $0, &cache, &budget) } == [false])
    }

    @Test func exceededBudgetIsThrown() throws {
        let object = try JSONDocument(Array(#"{"a":"\#(String(repeating: "a", count: 10_000))"}"#.utf8)).root
        for text in [#"["a",["Like","%b"]]"#, #"["a",["In",["b","c"]]]"#, #"["a",["LessThan","b"]]"#] {
            let condition = try Self.condition(#"{"or":[\#(text),{"not":\#(text)}]}"#)
            var budget = WorkBudget(steps: 500)
            #expect(throws: WorkExceeded.self) { try condition.holds(for: object, &budget) }
            #expect(throws: WorkExceeded.self) { try budget.spend(0) }
        }
    }

    private static let keys: [(text: String, keys: [String]?)] = [
        (#"["a.b",["Equals",1]]"#, ["a.b=integer(1)"]),
        (#"["a",["In",[1,1.0,"x",null]]]"#, ["a=integer(1)", "a=null", "a=x"]),
        (#"["a",["In",[]]]"#, []), (#"["a",["Equals",true]]"#, ["a=bool(true)"]),
        (#"["a",["Equals",9007199254740991]]"#, ["a=integer(9007199254740991)"]),
        (#"["a",["Equals",9007199254740992]]"#, nil), (#"["a",["Equals",-9007199254740992]]"#, nil),
        (#"["a",["Equals",18446744073709551615]]"#, nil), (#"["a",["Equals",0.5]]"#, nil),
        (#"["a",["Equals",-0.0]]"#, ["a=integer(0)"]),
        (#"["a",["In",[1,0.5]]]"#, nil), (#"["a",["Equals","\#(String(repeating: "a", count: 257))"]]"#, nil),
        (#"["a",["In",[1,[2]]]]"#, nil), (#"["a",["Equals",{"b":1}]]"#, nil),
        (#"["a",["Equals",{"property":"b"}]]"#, nil), (#"["a",["NotEquals",1]]"#, nil),
        (#"{"not":["a",["Equals",1]]}"#, nil), (#"{"not":{"not":["a",["Equals",1]]}}"#, nil),
        (#"{"and":[["a",["In",[1,2]]],["b",["Like","x%"]],["c",["Equals","x"]]]}"#, ["c=x"]),
        (#"{"and":[["b",["Like","x%"]]]}"#, nil), (#"{"and":[]}"#, nil), (#"{"or":[]}"#, []),
        (
            #"{"or":[["a",["Equals",1]],{"and":[["b",["Equals",2]],["c",["Exists"]]]}]}"#,
            ["a=integer(1)", "b=integer(2)"]
        ),
        (#"{"or":[["a",["Equals",1]],["b",["Exists"]]]}"#, nil),
        (#"["a",["In",[\#((0..<65).map(String.init).joined(separator: ","))]]]"#, nil),
        (#"["\#(String(repeating: "a.", count: 16))a",["Equals",1]]"#, nil),
    ]

    @Test(arguments: keys)
    func accessKeysAreNecessary(_ text: String, _ keys: [String]?) throws {
        let found = try Self.condition(text).accessKeys?.map { key in
            let value = if case .string(let name) = key.value { name.text } else { "\(key.value)" }
            return key.path.map(\.text).joined(separator: ".") + "=" + value
        }
        #expect(found?.sorted() == keys)
    }

    @Test func footprintCountsOperands() throws {
        let list = (0..<10_000).map(String.init).joined(separator: ",")
        #expect(try Self.condition(#"["a",["In",[\#(list)]]]"#).footprint > 10_000 * 16)
        #expect(try Self.condition(#"["a",["Contains",[\#(list)]]]"#).footprint > 10_000 * 16)
        let text = String(repeating: "a", count: 100_000)
        for operand in [#""\#(text)""#, #"["\#(text)"]"#, #"{"\#(text)":1}"#] {
            #expect(try Self.condition(#"["a",["Equals",\#(operand)]]"#).footprint > 100_000)
        }
        #expect(try Self.condition(#"["\#(text)",["Exists"]]"#).footprint > 100_000)
    }
}
