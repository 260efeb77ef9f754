import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct JSONDocumentTests {
    private func parse(_ text: String) throws -> JSONDocument { try JSONDocument(Array(text.utf8)) }

    @Test(arguments: [
        "0", "-0", "1.5e+10", "1E5", "true", "false", "null", "\"\"", "[]", "{}", " [ 1 , {\"a\" : null} ] \n",
        #""\u00e4\ud83d\ude00\n""#, "\"ä€😀\"", "123456789012345678901234567890",
    ])
    func acceptsJSON(_ text: String) throws {
        #expect(
            try parse(text).root.bytes.elementsEqual(text.utf8.drop { $0 == 0x20 }.prefix(parse(text).root.bytes.count))
        )
    }

    @Test(arguments: [
        "", " ", "01", "1.", ".5", "1e", "+1", "-", "tru", "nulll", "\"", "\"\\x\"", "\"\\u12\"", "\"\t\"", "[1,]",
        "[1 2]",
        "{\"a\"}", "{\"a\":1,}", "{a:1}", "[", "{", "{} {}", "\u{FEFF}{}", "NaN", "'a'",
    ])
    func refusesInvalidJSON(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try parse(text) }
    }

    @Test(
        arguments: [
            [0x80], [0xC0, 0x80], [0xC3], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80],
            [0xFF], [0xE2, 0x82], [0xF5, 0x80, 0x80, 0x80],
        ] as [[UInt8]]
    )
    func refusesInvalidUTF8(_ bytes: [UInt8]) {
        #expect(throws: JSONSyntaxError.self) { try JSONDocument([0x22] + bytes + [0x22]) }
    }

    @Test func boundsTheDepth() throws {
        let limit = JSONDocument.maximumDepth
        _ = try parse(String(repeating: "[", count: limit) + String(repeating: "]", count: limit))
        #expect(throws: JSONSyntaxError.self) {
            try parse(String(repeating: "[", count: limit + 1) + String(repeating: "]", count: limit + 1))
        }
        #expect(throws: JSONSyntaxError.self) { try parse(String(repeating: "{\"a\":", count: 1_000_000)) }
    }

    @Test func boundsTheNumberOfValues() throws {
        for (text, count) in [("[1,[],{}]", 4), (#"{"a":[1],"b":2}"#, 6), ("[[[[]]]]", 4)] {
            let bytes = Array(text.utf8)
            #expect(try JSONDocument(bytes, maximumValues: count).nodes.count == count)
            #expect(throws: JSONSyntaxError.self) { try JSONDocument(bytes, maximumValues: count - 1) }
        }
        let many = Array("[\(Array(repeating: "1", count: 1_000).joined(separator: ","))]".utf8)
        #expect(throws: JSONSyntaxError.self) { try JSONDocument(many, maximumValues: 1_000) }
        #expect(try JSONDocument(many, maximumValues: 1_001).nodes.count == 1_001)
    }

    @Test func findsMembers() throws {
        let root = try parse(#"{"a":1,"b":{"c":[10,"x\u0041\/"]},"a":2,"\u0062b":3}"#).root
        #expect(root["a"]?.number == 2)
        #expect(root["bb"]?.number == 3)
        #expect(root["none"] == nil)
        let text = try #require(root["b"]?["c"]?.elements.map(\.self).last)
        #expect(text.string == "xA/")
        #expect(text.pointer == "/b/c/1")
        #expect(root.pointer.isEmpty)
    }

    @Test func comparesEscapedKeys() throws {
        let root = try parse(#"{"\u006e\u0061me":1,"nam\u0065x":2,"n\/\"":3,"na":4,"\u016eame":5}"#).root
        #expect(root["name"]?.number == 1)
        #expect(root["namex"]?.number == 2)
        #expect(root["n/\""]?.number == 3)
        #expect(root["na"]?.number == 4)
        #expect(root["nam"] == nil)
    }

    @Test func escapesPointers() throws {
        let view = try #require(try parse(#"{"a/b~c":[{"":true}]}"#).root.members.map(\.value).first)
        #expect(view.elements.map(\.self)[0].members.map(\.value)[0].pointer == "/a~1b~0c/0/")
    }

    @Test func repairsLoneSurrogates() throws {
        #expect(try parse(#""a\ud800b\udc00""#).root.string == "a\u{FFFD}b\u{FFFD}")
    }

    @Test func keepsIntegersExactly() throws {
        let json = AnyCodable(try parse("[9223372036854775807,-9223372036854775808,18446744073709551615,0.5]").root)
        #expect(json == .array([.integer(.max), .integer(.min), .unsignedInteger(.max), .double(0.5)]))
        #expect(try PayloadCoder.encode(json) == "[9223372036854775807,-9223372036854775808,18446744073709551615,0.5]")
        #expect(try PayloadCoder.decode(AnyCodable.self, from: PayloadCoder.encode(json)) == json)
    }

    private static let duplicates: [(text: String, pointer: String?)] = [
        (#"{"a":1,"b":2}"#, nil), (#"{"a":1,"a":2}"#, "/a"), (#"{"a":{"b":1,"c":[{"d":1,"d":2}]}}"#, "/a/c/0/d"),
        (#"{"a":1,"\u0061":2}"#, "/a"), (#"{"\u0061":1,"a":2}"#, "/a"), (#"{"ab":1,"ac":2,"a":3}"#, nil),
        ("[1,1]", nil), (#"{"xa":1,"ya":2}"#, nil), (#"{"xa":1,"ya":2,"xa":3}"#, "/xa"),
        (wide(last: "k3"), "/k3"), (wide(last: "x"), nil),
    ]

    /// Returns an object with 40 members and a last one.
    private static func wide(last: String) -> String {
        let members = (0..<40).map { number in "\"k\(number)\":0," }
        return "{" + members.joined() + "\"\(last)\":1}"
    }

    @Test(arguments: duplicates)
    func duplicateMembersAreFound(_ text: String, _ pointer: String?) throws {
        let found = try JSONDocument(Array(text.utf8)).root.duplicateMember
        // A pointer refers to the first of several equal members.
        #expect((found == nil) == (pointer == nil))
        if let found, let pointer { #expect(found.pointer == pointer) }
    }
}
