import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

private final class ExampleObject: CoatyObject {
    override class var objectType: String {
        register(objectType: "hello.coaty.ExampleObject", with: self)
    }

    let myValue: String

    init(myValue: String) {
        self.myValue = myValue
        super.init(coreType: .CoatyObject, objectType: Self.objectType, objectId: .init(), name: "Example")
    }

    enum CodingKeys: String, CodingKey {
        case myValue
    }

    required init(from decoder: any Decoder) throws {
        myValue = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .myValue)
        try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(myValue, forKey: .myValue)
    }
}

@Suite(.exclusive) struct CoatyObjectTests {
    private func decode(_ text: String) throws -> CoatyObject {
        try PayloadCoder.object(JSONDocument(Array(text.utf8)).root)
    }

    @Test func decodesByRegisteredClass() throws {
        let sent = ExampleObject(myValue: "v")
        let text = try sent.json
        let received = try #require(try decode(text) as? ExampleObject)
        #expect(received.myValue == "v")
        #expect(received.objectId == sent.objectId)
        #expect(try ComparableJSON(received.json) == ComparableJSON(text))
    }

    @Test func unknownMembersAreKept() throws {
        let text = #"""
            {"coreType":"Task","objectType":"com.example.T","objectId":"o","name":"n","creatorId":"c","creationTimestamp":1,
             "status":2,"big":18446744073709551615,"deep":{"a":[null,true,{"b":-1.5}]}}
            """#
        let task = try #require(try decode(text) as? CoatyTask)
        #expect(task.custom.keys.sorted() == ["big", "deep"])
        #expect(task.custom["big"] == .unsignedInteger(.max))
        #expect(try ComparableJSON(task.json) == ComparableJSON(text))
    }

    @Test func takesTheLastOfDuplicateKeysAndRepairsLoneSurrogates() throws {
        let text = #"""
            {"coreType":"CoatyObject","objectType":"t","objectId":"o","name":"first","\u006eame":"last","x":"\ud800"}
            """#
        let object = try decode(text)
        #expect(object.name == "last")
        #expect(object.custom["x"] == .string("\u{FFFD}"))
    }

    @Test func refusesAnUnknownCoreType() {
        #expect(throws: DecodingError.self) {
            try decode(#"{"coreType":"Foo","objectType":"com.example.T","objectId":"o","name":"n"}"#)
        }
    }

    @Test func valuesWithoutJSONFormAreNotEncoded() {
        let node = IoNode(name: "n", characteristics: ["when": ContinuousClock.now])
        #expect(throws: EncodingError.self) { try node.json }
    }
}
