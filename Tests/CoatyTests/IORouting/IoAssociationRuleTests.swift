import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct IoAssociationRuleTests {
    private static func json(_ text: String) throws -> JSONView { try JSONDocument(Array(text.utf8)).root }

    private static let guide =
        #"[{"condition":["actorNode.characteristics.isResponsibleForOperatingState","#
        + #"["Equals",{"property":"context.operatingState"}]],"name":"Responsible actors","#
        + #""valueType":"coaty.test.Temperature[Celsius]"}]"#

    @Test func rulesOfTheGuideAreParsed() throws {
        let rules = try IoAssociationRule.rules(Self.json(Self.guide))
        #expect(rules.map(\.name) == ["Responsible actors"])
        #expect(rules[0].valueType == "coaty.test.Temperature[Celsius]")
        #expect(rules[0].contextProperties == ["context.operatingState"])
        guard case .filter(let condition) = rules[0].condition else {
            Issue.record("not a filter")
            return
        }
        func holds(_ responsible: String, _ state: String) throws -> Bool {
            let objects = try IoAssociationRule.Objects(
                source: Self.json("{}"),
                sourceNode: Self.json("{}"),
                actor: Self.json("{}"),
                actorNode: Self.json(#"{"characteristics":{"isResponsibleForOperatingState":"\#(responsible)"}}"#),
                context: Self.json(#"{"operatingState":"\#(state)"}"#)
            )
            return condition.matches { objects[$0] }
        }
        #expect(try holds("normal", "normal"))
        #expect(try !holds("normal", "emergency"))
    }

    @Test(arguments: [
        guide,
        #"[{"condition":{"and":[["source.name",["Like","a%"]],{"not":{"or":[[["context","a.b"],["Between",1,{"property":"actor.updateRate"}]]]}}]},"name":"n"}]"#,
        #"[{"condition":["sourceNode.a",["In",["x",null,{"value":1}]]],"name":"n"},{"condition":{"and":[]},"name":"n"}]"#,
        #"[{"condition":["sourceNode.a",["Equals",{"value":{"property":"context"}}]],"name":"n"}]"#,
        "[]",
    ])
    func rulesRoundTrip(text: String) throws {
        #expect(try PayloadCoder.encode(IoAssociationRule.rules(Self.json(text))) == text)
    }

    @Test func everyRootNamesItsObject() throws {
        let objects = try IoAssociationRule.Objects(
            source: Self.json(#""source""#),
            sourceNode: Self.json(#""sourceNode""#),
            actor: Self.json(#""actor""#),
            actorNode: Self.json(#""actorNode""#),
            context: Self.json(#""context""#)
        )
        for root in IoAssociationRule.Root.allCases { #expect(objects[root.rawValue]?.string == root.rawValue) }
        #expect(objects["router"] == nil)
    }

    @Test func operatorsAreEncodedByName() throws {
        let rules = try IoAssociationRule.rules(
            Self.json(#"[{"name":"n","valueType":"","condition":["source.a",[9]]}]"#)
        )
        #expect(rules[0].valueType == nil)
        #expect(try PayloadCoder.encode(rules) == #"[{"condition":["source.a",["Exists"]],"name":"n"}]"#)
    }

    @Test(arguments: [
        ("{}", ""),
        ("[1]", "/0"),
        (#"[{"condition":{"and":[]}}]"#, "/0/name"),
        (#"[{"name":"n","condition":{"not":["source.a",["In",[1,{"x":-1e999}]]]}}]"#, "/0/condition/not/1/1/1/x"),
        (#"[{"name":"","condition":{"and":[]}}]"#, "/0/name"),
        (#"[{"name":1,"condition":{"and":[]}}]"#, "/0/name"),
        (#"[{"name":"n"}]"#, "/0/condition"),
        (#"[{"name":"n","valueType":1,"condition":{"and":[]}}]"#, "/0/valueType"),
        (#"[{"name":"n","conditions":1,"condition":{"and":[]}}]"#, "/0/conditions"),
        (#"[{"name":"n","condition":{"and":[]}},{"name":"n","condition":{"xor":[]}}]"#, "/1/condition"),
        (#"[{"name":"n","condition":["source.a",["equals",1]]}]"#, "/0/condition/1/0"),
        (#"[{"name":"n","condition":["source.a",["Equals"]]}]"#, "/0/condition/1"),
        (#"[{"name":"n","condition":["sourc.a",["Exists"]]}]"#, "/0/condition/0"),
        (#"[{"name":"n","condition":[[],["Exists"]]}]"#, "/0/condition/0"),
        (#"[{"name":"n","condition":["router",["Exists"]]}]"#, "/0/condition/0"),
        (#"[{"name":"n","condition":["source.a",["Between",1,{"property":"b"}]]}]"#, "/0/condition/1/2/property"),
        (#"[{"name":"n","condition":{"or":[{"not":["a",["Exists"]]}]}}]"#, "/0/condition/or/0/not/0"),
        (#"[{"name":"n","condition":{"and":[["actor",["Exists"]],["a",["Exists"]]]}}]"#, "/0/condition/and/1/0"),
    ])
    func mistakesAreRefusedWithTheirLocation(text: String, pointer: String) throws {
        let view = try Self.json(text)
        let error = #expect(throws: PayloadError.self) { try IoAssociationRule.rules(view) }
        guard case .invalid(pointer, let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(!reason.isEmpty)
    }

    @Test func numberOfRulesIsBounded() throws {
        func list(_ count: Int) throws -> JSONView {
            let rule = #"{"name":"n","condition":{"and":[]}}"#
            return try Self.json("[" + Array(repeating: rule, count: count).joined(separator: ",") + "]")
        }
        let limit = IoAssociationRule.maximumCount
        #expect(try IoAssociationRule.rules(list(limit)).count == limit)
        #expect(throws: PayloadError.invalid(pointer: "", reason: "has more than \(limit) rules")) {
            try IoAssociationRule.rules(list(limit + 1))
        }
    }

    @Test func numberOfConditionsIsBounded() throws {
        func list(_ count: Int) throws -> JSONView {
            let half = Array(repeating: #"{"and":[]}"#, count: count - 1).joined(separator: ",")
            let rule = #"{"name":"n","condition":{"or":[\#(half)]}}"#
            return try Self.json("[\(rule),\(rule)]")
        }
        let limit = IoAssociationRule.maximumConditionCount
        #expect(try IoAssociationRule.rules(list(limit / 2)).count == 2)
        let reason = "the rules have more than \(limit) conditions"
        #expect(throws: PayloadError.invalid(pointer: "/1/condition", reason: reason)) {
            try IoAssociationRule.rules(list(limit / 2 + 1))
        }
    }

    @Test func rulesMadeInCodeAreCheckedToo() throws {
        #expect(throws: PayloadError.self) {
            try IoAssociationRule(name: "n", condition: .and([.property("a", .exists())]))
        }
        var condition = ObjectFilterCondition.and([])
        for _ in 0..<ObjectFilterCondition.maximumDepth { condition = .not(condition) }
        _ = try IoAssociationRule(name: "n", condition: condition)
        #expect(throws: PayloadError.self) { try IoAssociationRule(name: "n", condition: .not(condition)) }
    }

    @Test func aClosureHasNoJSON() {
        let rule = IoAssociationRule(name: "n") { _, _, _, _, _, _ in true }
        #expect(throws: EncodingError.self) { try PayloadCoder.encode(rule) }
        #expect(rule.usesContext)
        #expect(rule.contextProperties == nil)
    }

    @Test func ruleIsAffectedByItsContextProperties() throws {
        let rule = try IoAssociationRule(
            name: "n",
            condition: .or([
                .property("source.a", .init(filterOperator: .Equals, op1: .property("context.state.a"))),
                .not(.property(["context", "list", "0"], .exists())),
                .property("actor.b", .init(filterOperator: .In, op1: .property("context.state.a"))),
            ])
        )
        #expect(rule.usesContext)
        #expect(rule.contextProperties == ["context.state.a", ["context", "list", "0"]])
        let old = try Self.json(#"{"state":{"a":1},"other":1}"#)
        #expect(try !rule.isTouched(from: old, to: Self.json(#"{"other":2,"state":{"b":2,"a":1}}"#)))
        #expect(try rule.isTouched(from: old, to: Self.json(#"{"state":{"a":2}}"#)))
        #expect(try rule.isTouched(from: old, to: Self.json(#"{"state":{}}"#)))
        #expect(try rule.isTouched(from: old, to: Self.json(#"{"state":{"a":1},"list":[0]}"#)))

        let whole = try IoAssociationRule(name: "n", condition: .property("context", .contains(["a": 1])))
        #expect(try whole.isTouched(from: old, to: Self.json(#"{"state":{"a":1},"other":2}"#)))
        let none = try IoAssociationRule(name: "n", condition: .property("source.context", .exists()))
        #expect(!none.usesContext)
        #expect(try !none.isTouched(from: old, to: Self.json("{}")))
    }
}
