import Foundation
import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct ObjectMatcherTests {
    private static func lines(_ kind: String) throws -> [JSONView] {
        let url = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Fixtures/golden/matcher.jsonl"
        )
        return try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
            .map { try JSONDocument(Array($0.utf8)).root }
            .filter { $0["kind"]?.string == kind }
    }

    private static func json(_ text: String) throws -> JSONView { try JSONDocument(Array(text.utf8)).root }

    private static func matches(_ property: ObjectFilterProperty, _ expression: ObjectFilterExpression, _ text: String)
        throws -> Bool
    {
        try ObjectFilterCondition.property(property, expression).matches(json(text))
    }

    @Test func verdictsEqualTheReference() throws {
        var count = 0
        for line in try Self.lines("match") {
            let object = try #require(line["object"])
            let filter = try ObjectFilter(#require(line["filter"]))
            guard let result = line["result"]?.bool else { continue }
            let note = line["note"]?.string ?? ""
            #expect(filter.matches(object) == result, "\(note)")
            #expect(try ContextFilter(#require(line["filter"])).matches(object) == result, "\(note)")
            count += 1
        }
        #expect(count > 200)
    }

    /// For some filters, the reference throws a TypeError, and its agent drops the request. A filter from the network
    /// must not cause an error here: neither an operator nor its opposite holds.
    @Test func conditionsThatThrowInTheReferenceDoNotMatch() throws {
        var count = 0
        for line in try Self.lines("match") {
            guard let result = line["result"]?.string else { continue }
            #expect(result.hasPrefix("throws: "))
            #expect(try !ObjectFilter(#require(line["filter"])).matches(#require(line["object"])))
            count += 1
        }
        #expect(count == 5)
    }

    @Test func orderingsEqualTheReference() throws {
        let lines = try Self.lines("order")
        #expect(lines.count == 8)
        for line in lines {
            // Ids in the recorded lines are not valid Coaty ids, so they are put into the name.
            let objects = try #require(line["objects"]).elements.map { view -> CoatyObject in
                let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: "")
                for (key, value) in view.members
                where !["coreType", "objectType", "objectId", "name"].contains(key.string) {
                    object.custom[key.string ?? ""] = AnyCodable(value)
                }
                object.name = view["objectId"]?.string ?? ""
                return object
            }
            let filter = try ObjectFilter(#require(line["filter"]))
            let expected = line["result"]?.elements.compactMap(\.string)
            #expect(
                try ObjectMatcher.objects(objects, matching: filter).map(\.name) == expected,
                "\(line["note"]?.string ?? "")"
            )
        }
    }

    @Test func objectsAreMatchedInTheirEncodedForm() throws {
        let object = IoContext(
            coreType: .IoContext,
            objectType: "com.example.Floor",
            objectId: .init(),
            name: "floor 6"
        )
        #expect(
            try ObjectMatcher.matchesFilter(
                obj: object,
                filter: ObjectFilter(conditions: .property("name", .like("floor%")))
            )
        )
        #expect(
            try !ObjectMatcher.matchesFilter(
                obj: object,
                filter: ContextFilter(conditions: .property("name", .like("%7")))
            )
        )
        #expect(try ObjectMatcher.matchesFilter(obj: object, filter: ObjectFilter(take: 1)))
    }

    @Test func incomparableValuesAreOrderedByKind() throws {
        let values: [AnyCodable] = [["a": 1], "b", 2, true, [1], nil, "A", 1.5, false]
        let objects = values.enumerated().map { index, value in
            let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: "\(index)")
            object.custom["p"] = value
            return object
        }
        let filter = ObjectFilter(orderByProperties: [.init(properties: "p", sortingOrder: .Asc)])
        #expect(try ObjectMatcher.objects(objects, matching: filter).map(\.name).joined() == "583726104")
    }

    @Test func negativeCountsTakeAndSkipNothing() throws {
        let objects = (0..<3).map {
            CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: "\($0)")
        }
        #expect(try ObjectMatcher.objects(objects, matching: ObjectFilter(take: -1)).isEmpty)
        #expect(try ObjectMatcher.objects(objects, matching: ObjectFilter(skip: .min)).count == 3)
        #expect(try ObjectMatcher.objects(objects, matching: ObjectFilter(take: .max, skip: .max)).isEmpty)
    }

    @Test func rootsAreResolvedByName() throws {
        let objects = [
            "source": try Self.json(#"{"valueType":"T","rates":[5,9]}"#),
            "context": try Self.json(#"{"valueType":"T","operatingState":"on","limit":9}"#),
        ]
        let roots = { (name: String) in objects[name] }
        let same = ObjectFilterExpression(filterOperator: .Equals, op1: .property("context.valueType"))
        #expect(ObjectFilterCondition.property("source.valueType", same).matches(roots: roots))
        let limit = ObjectFilterExpression(filterOperator: .LessThan, op1: .property("context.limit"))
        #expect(ObjectFilterCondition.property("source.rates.0", limit).matches(roots: roots))
        #expect(!ObjectFilterCondition.property("source.rates.1", limit).matches(roots: roots))
        #expect(ObjectFilterCondition.not(.property("actor.valueType", same)).matches(roots: roots))
        #expect(ObjectFilterCondition.property("actor", .notExists()).matches(roots: roots))
        #expect(ObjectFilterCondition.property([], .notExists()).matches(roots: roots))
        let missing = ObjectFilterExpression(filterOperator: .Equals, op1: .property("context.nothing"))
        #expect(!ObjectFilterCondition.property("source.valueType", missing).matches(roots: roots))
    }

    @Test func numbersAreComparedByValue() throws {
        #expect(try Self.matches("p", .equals(9_007_199_254_740_993), #"{"p":9007199254740993}"#))
        #expect(try !Self.matches("p", .equals(9_007_199_254_740_993), #"{"p":9007199254740992}"#))
        #expect(try Self.matches("p", .lessThan(9_007_199_254_740_993), #"{"p":9007199254740992.0}"#))
        #expect(try Self.matches("p", .equals(.init(UInt64.max)), #"{"p":18446744073709551615}"#))
        #expect(try Self.matches("p", .equals(1), #"{"p":1.0}"#))
        #expect(try Self.matches("p", .greaterThan(.init(Int64.max)), #"{"p":1e400}"#))
        #expect(try Self.matches("p", .lessThan(.init(Int64.min)), #"{"p":-1e30}"#))
        #expect(try !Self.matches("p", .lessThanOrEqual(.init(Double.nan)), #"{"p":1}"#))
    }

    @Test func stringsAndNamesAreEqualByteByByte() throws {
        #expect(try !Self.matches("p", .equals("\u{E4}"), #"{"p":"a\#u{308}"}"#))
        #expect(try Self.matches("\u{E4}", .equals("x"), #"{"\u00e4":"x"}"#))
        #expect(try !Self.matches("a\u{308}", .exists(), #"{"\u00e4":"x"}"#))
    }

    @Test func lastOfDuplicateMembersApplies() throws {
        #expect(try Self.matches("p.a", .equals(2), #"{"p":{"a":1,"a":2}}"#))
        #expect(try Self.matches("p", .equals(["a": 2]), #"{"p":{"a":1,"a":2}}"#))
        #expect(try !Self.matches("p", .contains(["a": 1]), #"{"p":{"a":1,"a":2}}"#))
    }

    @Test func wildcardsMatchEarliestWithoutLineBreaks() throws {
        #expect(try Self.matches("p", .like("%a%b"), #"{"p":"xaaab"}"#))
        #expect(try Self.matches("p", .like("%ab%ab%\n%c"), #"{"p":"aabcab\nxc"}"#))
        #expect(try !Self.matches("p", .like("%b"), #"{"p":"a\nb"}"#))
        #expect(try Self.matches("p", .like("a\\"), #"{"p":"a"}"#))
        #expect(try Self.matches("p", .like("%%__"), #"{"p":"😀"}"#))
    }

    @Test func aPatternThatIsTooLongMatchesNothing() throws {
        let pattern = String(repeating: "a", count: LikePattern.maximumLength)
        #expect(try Self.matches("p", .like(pattern), #"{"p":"\#(pattern)"}"#))
        #expect(try !Self.matches("p", .like(pattern + "a"), #"{"p":"\#(pattern)a"}"#))
    }

    /// The number of steps is bounded by text length times pattern length; backtracking would not end.
    @Test func aPatternOfManyRunsEnds() throws {
        let text = String(repeating: "a", count: 20_000)
        #expect(try !Self.matches("p", .like(String(repeating: "%a", count: 500) + "b"), #"{"p":"\#(text)"}"#))
    }

    @Test func tooDeepConditionsAndNegationsDoNotMatch() throws {
        var condition = ObjectFilterCondition.and([])
        for _ in 0..<ObjectFilterCondition.maximumDepth { condition = .not(condition) }
        #expect(try condition.matches(Self.json("{}")))
        #expect(try !ObjectFilterCondition.not(condition).matches(Self.json("{}")))
        #expect(try !ObjectFilterCondition.not(.not(condition)).matches(Self.json("{}")))
    }

    @Test func nameMayBeginWithACombiningMark() throws {
        #expect(try Self.matches("a.\u{301}b", .equals(1), "{\"a\":{\"\u{301}b\":1}}"))
    }

    /// Each comparison would take far more than a billion steps.
    @Test func tooExpensiveComparisonsAndNegationsDoNotHold() throws {
        let count = 50_000
        let lists = "[" + (0..<count).map { "[\($0)]" }.joined(separator: ",") + "]"
        let missing = AnyCodable.array((0..<count).reversed().map { [-1, AnyCodable($0)] })
        let present = AnyCodable.array((0..<count).reversed().map { [AnyCodable($0)] } + [missing])
        for expression in [.contains(present), .notContains(present)] as [ObjectFilterExpression] {
            #expect(try !Self.matches("p", expression, "{\"p\":\(lists)}"), "\(expression.filterOperator)")
        }
    }

    @Test func largeValueIsComparedWithinTheStepLimit() throws {
        let count = 50_000
        let members = "{" + (0..<count).map { "\"\($0)\":1" }.joined(separator: ",") + "}"
        let text = "\"" + String(repeating: "y", count: 500_000) + "\""
        for (values, value) in [(.object([:]), members), ("x", text)] as [(AnyCodable, String)] {
            let list = [AnyCodable](repeating: values, count: count)
            #expect(try !Self.matches("p", .in(list), "{\"p\":\(value)}"))
            #expect(try Self.matches("p", .notIn(list), "{\"p\":\(value)}"))
        }
    }

    @Test func longListsAreWithinTheSteps() throws {
        let ids = (0..<20_000).map { AnyCodable("id-\($0)") }
        #expect(try Self.matches("p", .in(ids), #"{"p":"id-19999"}"#))
        #expect(try Self.matches("p", .notIn(ids), #"{"p":"id-20000"}"#))
    }
}
