import Foundation
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@Suite(.exclusive) struct ObjectFilterTests {
    private static func wire(_ json: String) throws -> ObjectFilter {
        try ObjectFilter(JSONDocument(Array(json.utf8)).root)
    }

    @Test func theEmptyFilterIsAnEmptyObject() throws {
        #expect(try PayloadCoder.encode(ObjectFilter()) == "{}")
        #expect(try PayloadCoder.encode(ContextFilter()) == "{}")
    }

    @Test func aFilterIsWrittenAsTheReferenceSendsIt() throws {
        let filter = try ObjectFilter(
            conditions: .and([
                .property("nested.a", .exists()), .property(["nested", "a.b"], .notExists()),
                .property("a", .between(1, 2)), .property("b", .in(["x", nil])),
            ]),
            orderByProperties: [
                .init(properties: "name", sortingOrder: .Asc),
                .init(properties: ["nested", "a.b"], sortingOrder: .Desc),
            ],
            take: 10,
            skip: 5
        )
        let json =
            #"{"conditions":{"and":[["nested.a",[9]],[["nested","a.b"],[10]],["a",[4,1,2]],["b",[13,["x",null]]]]},"#
            + #""orderByProperties":[["name","Asc"],[["nested","a.b"],"Desc"]],"skip":5,"take":10}"#
        #expect(try PayloadCoder.encode(filter) == json)
        #expect(try Self.wire(json) == filter)
        #expect(try PayloadCoder.decode(from: json) == filter)
    }

    @Test func aFilterIsBuiltPartByPart() throws {
        let one = try ObjectFilter.buildWithCondition {
            $0.condition = .init(
                property: .init("a"),
                expression: .init(filterOperator: .Between, op1: .value(1), op2: .value(2))
            )
            $0.take = 3
        }
        #expect(try one == ObjectFilter(conditions: .property("a", .between(1, 2)), take: 3))
        let several = try ObjectFilter.buildWithConditions {
            $0.conditions = .init(or: [.property("a", .exists())])
            $0.orderByProperties = [.init(properties: "b", sortingOrder: .Desc)]
            $0.skip = 4
        }
        #expect(
            try PayloadCoder.encode(several)
                == #"{"conditions":{"or":[["a",[9]]]},"orderByProperties":[["b","Desc"]],"skip":4}"#
        )
        #expect(throws: PayloadError.invalid(pointer: "/conditions", reason: "missing")) {
            try ObjectFilter.buildWithConditions { $0.condition = .init(and: []) }
        }
    }

    @Test func referenceFiltersRoundTrip() throws {
        var count = 0
        for vector in try Golden.lines("vectors.jsonl", as: Golden.Vector.self) where vector.encoding == "utf8" {
            guard let root = try? JSONDocument(Array(vector.payload.utf8)).root,
                let view = root["objectFilter"] ?? root["filter"]
            else { continue }
            let json = try PayloadCoder.encode(ObjectFilter(view))
            #expect(try ComparableJSON(json) == ComparableJSON(Array(view.bytes)), "\(vector.note)")
            count += 1
        }
        #expect(count > 5)
    }

    @Test func inboundFiltersAreAcceptedAsByTheReference() throws {
        var count = 0
        for line in try Golden.lines("inbound.jsonl", as: Golden.Inbound.self) {
            guard let root = try? JSONDocument(Array(line.payload.utf8)).root else { continue }
            if let filter = root["objectFilter"], root["objectJoinConditions"] == nil, line.note != "query both types" {
                #expect(((try? ObjectFilter(filter)) != nil) == line.accepted, "\(line.note)")
                count += 1
            }
            if let filter = root["filter"], line.topic.contains("/CLL:") {
                #expect(((try? ContextFilter(filter)) != nil) == line.accepted, "\(line.note)")
                count += 1
            }
            if let joins = root["objectJoinConditions"] {
                #expect(((try? ObjectJoinCondition.list(joins)) != nil) == line.accepted, "\(line.note)")
                count += 1
            }
        }
        #expect(count > 20)
    }

    @Test func operatorNamesAreRefusedOnTheWire() throws {
        let json = #"{"conditions":["a",["Equals",1]]}"#
        #expect(throws: PayloadError.self) { try Self.wire(json) }
        let filter: ObjectFilter = try PayloadCoder.decode(from: json)
        #expect(try PayloadCoder.encode(filter) == #"{"conditions":["a",[7,1]]}"#)
        for filterOperator in ObjectFilterOperator.allCases {
            let decoded: ObjectFilterOperator = try PayloadCoder.decode(from: "\"\(filterOperator)\"")
            #expect(decoded == filterOperator)
        }
    }

    @Test(arguments: [
        (#"["a",[7,1]]"#, nil, nil),
        (#"{"and":[["a",[9]],{"or":[]}]}"#, "/conditions/and/1", "/conditions/and/1"),
        (#"{"or":[{"not":["a",[9]]}]}"#, "/conditions/or/0", "/conditions/or/0"),
        (#"{"not":["a",[9]]}"#, "/conditions/not", "/conditions/not"),
        (#"["a",[7,{"property":"b"}]]"#, "/conditions/1/1", nil),
    ])
    func unsupportedConditionsAreRefused(json: String, inTree: String?, inFilter: String?) throws {
        let condition: ObjectFilterCondition = try PayloadCoder.decode(from: json)
        #expect(pointer { _ = try ObjectFilter(conditions: condition) } == inTree)
        #expect(pointer { _ = try ContextFilter(conditions: condition) } == inTree)
        #expect(
            pointer { let _: ObjectFilter = try PayloadCoder.decode(from: #"{"conditions":\#(json)}"#) } == inFilter
        )
    }

    private func pointer(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch DecodingError.dataCorrupted(let context) {
            guard case .invalid(let pointer, _) = context.underlyingError as? PayloadError else { return "?" }
            return pointer
        } catch PayloadError.invalid(let pointer, _) {
            return pointer
        } catch {
            return "\(error)"
        }
    }

    @Test func conditionTreeRoundTrips() throws {
        let tree: ObjectFilterCondition = .or([
            .not(.and([.property("a.b", .like("x%")), .property(["c", "d.e"], .equals(["property": "f"]))])),
            .property("g", .init(filterOperator: .Between, op1: .property("h"), op2: .value(["value": 1]))),
        ])
        let json = try PayloadCoder.encode(tree)
        #expect(
            json
                == #"{"or":[{"not":{"and":[["a.b",[6,"x%"]],[["c","d.e"],[7,{"value":{"property":"f"}}]]]}},"#
                + #"["g",[4,{"property":"h"},{"value":{"value":1}}]]]}"#
        )
        #expect(try PayloadCoder.decode(from: json) == tree)
    }

    @Test(arguments: [
        "1", "{}", #"{"and":[],"or":[]}"#, #"{"xor":[]}"#, #"["a",["equals",1]]"#, #"["a",[7]]"#, #"["a",[9,1]]"#,
        #"["a",[4,1]]"#, #"["",[9]]"#,
    ])
    func mistakesInATreeAreErrors(json: String) {
        #expect(throws: DecodingError.self) { let _: ObjectFilterCondition = try PayloadCoder.decode(from: json) }
    }

    @Test func aTreeThatIsNestedTooDeepIsRefused() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: #"{"not":"#, count: depth) + #"["a",[9]]"# + String(repeating: "}", count: depth)
        }
        let limit = ObjectFilterCondition.maximumDepth
        let condition: ObjectFilterCondition = try PayloadCoder.decode(from: nested(limit))
        #expect(!condition.matches(try JSONDocument(Array("{}".utf8)).root))
        #expect(throws: DecodingError.self) {
            let _: ObjectFilterCondition = try PayloadCoder.decode(from: nested(limit + 1))
        }
    }

    @Test func fractionalCountsAreRoundedUp() throws {
        #expect(try Self.wire(#"{"take":1.5,"skip":-1.5}"#) == ObjectFilter(take: 2, skip: -1))
        #expect(try Self.wire(#"{"take":1e300,"skip":-1e300}"#) == ObjectFilter(take: .max, skip: .min))
    }

    @Test func joinConditionsAreOneOrAList() throws {
        let join = ObjectJoinCondition(localProperty: "refs", asProperty: "resolved", isLocalPropertyArray: true)
        let json = #"{"asProperty":"resolved","isLocalPropertyArray":true,"localProperty":"refs"}"#
        #expect(try PayloadCoder.encode(join) == json)
        #expect(try ObjectJoinCondition.list(JSONDocument(Array(json.utf8)).root) == [join])
        #expect(try ObjectJoinCondition.list(JSONDocument(Array("[\(json),\(json)]".utf8)).root) == [join, join])
    }
}
