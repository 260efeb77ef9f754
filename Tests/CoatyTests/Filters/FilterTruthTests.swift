import TestSupport
import Testing

@testable import Coaty

/// Conditions in three-valued logic, where nil is unknown.
@Suite(.exclusive) struct FilterTruthTests {
    private static let object =
        #"{"site":"hall-1","n":5,"text":"abc","list":[1,2],"map":{"a":1},"null":null,"flag":true}"#

    private func truth(_ json: String, steps: Int = 10_000, hasObject: Bool = true) throws -> Bool? {
        let condition = try ObjectFilterCondition(JSONDocument(Array(json.utf8)).root)
        let object = try JSONDocument(Array(Self.object.utf8)).root
        let principal = try JSONDocument(Array(#"{"site":"hall-1","sites":["hall-1"],"n":7}"#.utf8)).root
        func root(_ name: String) -> JSONView? {
            switch name {
            case "object": hasObject ? object : nil
            case "principal": principal
            default: nil
            }
        }
        var budget = WorkBudget(steps: steps)
        return try CompiledCondition(condition).truth(openRoots: ["principal"], roots: root, &budget)
    }

    @Test(arguments: [
        (#"["object.site",["Equals","hall-1"]]"#, true), (#"["object.site",["Equals","hall-2"]]"#, false),
        (#"["object.site",["Equals",{"property":"principal.site"}]]"#, true),
        (#"["object.n",["LessThan",{"property":"principal.n"}]]"#, true),
        (#"["object.n",["GreaterThanOrEqual",6]]"#, false), (#"["object.n",["Between",1,5]]"#, true),
        (#"["object.n",["NotBetween",1,5]]"#, false), (#"["object.text",["Like","a%"]]"#, true),
        (#"["object.list",["Contains",2]]"#, true), (#"["object.list",["NotContains",3]]"#, true),
        (#"["object.site",["In",{"property":"principal.sites"}]]"#, true), (#"["object.site",["NotIn",["x"]]]"#, true),
        (#"["object.null",["Equals",null]]"#, true), (#"["object.site",["Equals",5]]"#, false),
    ])
    func knownValuesCompareAsInFilters(_ json: String, _ expected: Bool) throws {
        #expect(try truth(json) == expected)
        #expect(try truth(#"{"not":\#(json)}"#) == !expected)
        #expect(try truth(json, hasObject: false) == nil)
    }

    @Test(arguments: [
        #"["object.none",["Equals","x"]]"#, #"["object.none",["NotEquals","x"]]"#,
        #"["object.none",["NotContains",1]]"#,
        #"["object.none",["NotIn",[1]]]"#, #"["object.none",["NotBetween",1,2]]"#, #"["object.none",["Like","%"]]"#,
        #"["object.site",["NotEquals",{"property":"principal.none"}]]"#,
        #"["object.list",["NotContains",{"property":"principal.none"}]]"#,
        #"["object.site",["Equals",{"property":"object.none"}]]"#,
        #"["object.n",["Between",1,{"property":"object.none"}]]"#,
        #"["object.map",["LessThan",1]]"#, #"["object.n",["LessThan",{"property":"object.map"}]]"#,
        #"["object.text",["GreaterThan",1]]"#, #"["object.list",["LessThanOrEqual",1]]"#,
        #"["object.map",["NotBetween",1,2]]"#, #"["object.n",["Like","%"]]"#, #"["object.text",["Like",1]]"#,
        #"["object.site",["In","hall-1"]]"#, #"["object.site",["NotIn",{"property":"principal.site"}]]"#,
        #"["object.map",["Contains",null]]"#, #"["object.map",["NotContains",null]]"#,
        #"["principal.none",["Exists"]]"#, #"["principal.none",["NotExists"]]"#, #"["other.x",["NotExists"]]"#,
        #"["principal.site.x",["NotExists"]]"#,
    ])
    func incomparableValuesAreUnknown(_ json: String) throws {
        #expect(try truth(json) == nil)
        #expect(try truth(#"{"not":\#(json)}"#) == nil)
        #expect(try truth(#"{"not":{"not":\#(json)}}"#) == nil)
    }

    @Test func existenceIsKnown() throws {
        #expect(try truth(#"["object.site",["Exists"]]"#) == true)
        #expect(try truth(#"["object.null",["NotExists"]]"#) == false)
        #expect(try truth(#"["object.none",["Exists"]]"#) == false)
        #expect(try truth(#"["object.none.x",["NotExists"]]"#) == true)
        #expect(try truth(#"["principal.site",["Exists"]]"#) == true)
        #expect(try truth(#"["principal.site",["NotExists"]]"#) == false)
        #expect(try truth(#"["object.none",["NotExists"]]"#, hasObject: false) == nil)
    }

    /// Kleene's truth tables, with the operands in both orders.
    @Test func connectivesAreThoseOfKleene() throws {
        let values: [(String, Bool?)] = [
            (#"["object.n",["Equals",5]]"#, true), (#"["object.n",["Equals",6]]"#, false),
            (#"["object.none",["Equals",6]]"#, nil),
        ]
        for (left, one) in values {
            for (right, other) in values {
                let and: Bool? = one == false || other == false ? false : one == nil || other == nil ? nil : true
                let or: Bool? = one == true || other == true ? true : one == nil || other == nil ? nil : false
                #expect(try truth(#"{"and":[\#(left),\#(right)]}"#) == and)
                #expect(try truth(#"{"or":[\#(left),\#(right)]}"#) == or)
            }
        }
        #expect(try truth(#"{"and":[]}"#) == true)
        #expect(try truth(#"{"or":[]}"#) == false)
    }

    @Test func exceededBudgetIsThrown() throws {
        let leaf = #"["object.n",["Equals",6]]"#
        let list = Array(repeating: leaf, count: 20).joined(separator: ",")
        #expect(try truth(#"{"or":[\#(list)]}"#) == false)
        #expect(throws: WorkExceeded.self) { try truth(#"{"or":[\#(list)]}"#, steps: 20) }
        #expect(throws: WorkExceeded.self) { try truth(#"{"not":{"or":[\#(list)]}}"#, steps: 20) }
        // A disjunction that is true before the budget is used up stays true.
        #expect(try truth(#"{"or":[["object.n",["Equals",5]],\#(list)]}"#, steps: 6) == true)
    }

    @Test func deepNestingIsUnknown() throws {
        let leaf = ObjectFilterCondition.property("object.n", .equals(5))
        let deep = (0...ObjectFilterCondition.maximumDepth).reduce(leaf) { condition, _ in .not(.not(condition)) }
        let object = try JSONDocument(Array(Self.object.utf8)).root
        var budget = WorkBudget(steps: 10_000)
        #expect(try CompiledCondition(deep).truth(roots: { _ in object }, &budget) == nil)
    }
}
