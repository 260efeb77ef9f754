import TestSupport
import Testing

@testable import Coaty

/// Answers to queries from a set of objects.
@Suite(.exclusive) struct QueryAnswerTests {
    private func object(_ id: String, _ type: String = "com.example.Job", _ properties: [String: AnyCodable] = [:])
        -> CoatyObject
    {
        let object = CoatyObject(coreType: .CoatyObject, objectType: type, objectId: CoatyUUID(wire: id), name: id)
        object.custom = properties
        return object
    }

    private var objects: [CoatyObject] {
        [
            object("a", "com.example.Job", ["owner": "u2", "rooms": ["r2", "none", "r1"], "urgency": 1]),
            object("b", "com.example.Job", ["owner": "u1", "urgency": 3]),
            object("c", "com.example.Job", ["rooms": [], "urgency": 2]),
            object("u1", "com.example.User"), object("u2", "com.example.User"), object("r1", "com.example.Room"),
            object("r2", "com.example.Room"),
        ]
    }

    private func answer(_ filter: ObjectFilter = ObjectFilter(), _ joins: [ObjectJoinCondition]? = nil) throws
        -> [JSONView]?
    {
        let query = try QueryEvent.with(
            objectTypes: ["com.example.Job"],
            objectFilter: filter,
            objectJoinConditions: joins
        )
        return try query.answer(from: objects)?.payload.json["objects"].map { Array($0.elements) }
    }

    private func names(_ view: JSONView?) -> [String?]? { view?.elements.map { $0["name"]?.string } }

    @Test func filtersOrdersAndLimits() throws {
        let filter = ObjectFilter(
            orderByProperties: [.init(properties: .init("urgency"), sortingOrder: .Desc)],
            take: 1,
            skip: 1
        )
        #expect(try answer(filter)?.map { $0["name"]?.string } == ["c"])
        let none = try ObjectFilter(conditions: .property("urgency", .greaterThan(.integer(9))))
        #expect(try answer(none) == nil)
    }

    @Test func addsRelatedObjects() throws {
        let found = try #require(
            try answer(
                ObjectFilter(),
                [
                    ObjectJoinCondition(localProperty: "owner", asProperty: "user", isOneToOneRelation: true),
                    ObjectJoinCondition(localProperty: "rooms", asProperty: "places", isLocalPropertyArray: true),
                ]
            )
        )
        #expect(found.map { $0["user"]?["name"]?.string } == ["u2", "u1", nil])
        #expect(found.map { names($0["places"]) } == [["r2", "r1"], [], []])
        #expect(objects[0].custom["user"] == nil)
    }

    @Test func refusesTooManyAndMisleadingJoins() throws {
        let join = ObjectJoinCondition(localProperty: "owner", asProperty: "user")
        let count = QueryEvent.maximumJoins
        #expect(try answer(ObjectFilter(), Array(repeating: join, count: count))?.count == 3)
        #expect(throws: PayloadError.self) { try answer(ObjectFilter(), Array(repeating: join, count: count + 1)) }
        let misleading = ObjectJoinCondition(localProperty: "owner", asProperty: "objectId")
        #expect(throws: PayloadError.self) { try answer(ObjectFilter(), [misleading]) }
    }
}
