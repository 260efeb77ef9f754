import Coaty
import Foundation
import TestSupport
import Testing

@testable import CoatyGateway

@Suite(.exclusive) struct YAMLNodeTests {
    @Test(
        arguments: [
            ("a: 1\nb: *c\n", 2, "found undefined alias"),
            ("a: &a [*a]\n", 1, "found undefined alias"),
            ("a: 1\n---\nb: 2\n", 2, "begins a second document"),
            ("a: 1\nb: 2\na: 3\n", 3, "has a key twice: a"),
            ("a: [1\nb: 2\n", 2, "did not find expected ',' or ']'"),
            ("a: 1\nb: \u{1}\n", 2, "is not YAML"),
            (String(repeating: "- ", count: 600), 1, "nested deeper than 512 levels"),
            // Each alias is one level, but the node has them all.
            (
                "- &n0 [x]\n" + (1...600).map { "- &n\($0) [*n\($0 - 1)]\n" }.joined(), 512,
                "nested deeper than 512 levels"
            ),
            ("\t- a\n", 1, "found character that cannot start any token"),
        ]
    )
    func errorsNameTheLine(text: String, line: Int, reason: String) {
        let error = #expect(throws: YAMLError.self) { try YAMLNode.parse(text) }
        #expect(error?.line == line && error?.reason == reason, "\(String(describing: error))")
    }

    @Test(arguments: ["", "# nothing\n", "---\n"]) func anEmptyTextHasNoValue(text: String) throws {
        #expect(try YAMLNode.parse(text)?.text ?? "" == "")
    }

    @Test func nodesKnowTheirLines() throws {
        let root = try #require(try YAMLNode.parse("a: &x\n  - b\nc: *x\n"))
        let members = try #require(root.mapping)
        #expect(members.map(\.key.line) == [1, 3] && members.map(\.value.line) == [1, 1])
        #expect(members[0].value === members[1].value)
    }
}

extension YAMLNode {
    /// Returns the mapping of a document.
    static func object(in text: String) throws -> [String: Any] {
        let root = try #require(try parse(text))
        let json = try PayloadCoder.encode(YAMLValue(root).json)
        return try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    }
}
