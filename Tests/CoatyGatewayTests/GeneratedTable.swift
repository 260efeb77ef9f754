import Foundation
import TestSupport
import Testing

/// A table of a document that is generated from the code: the lines between `<!-- section -->` and
/// `<!-- end of section -->`.
struct GeneratedTable {
    /// The path of the document in the repository.
    let document: String
    let section: String
    let head: [String]
    let rows: [[String]]

    /// Compares the table with the document. With `COATY_UPDATE_DOCUMENTS=1`, updates the document instead.
    func check() throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL
        let url = root.appending(path: document)
        let text = try String(contentsOf: url, encoding: .utf8)
        let begin = try #require(text.range(of: "<!-- \(section) -->\n"))
        let end = try #require(text.range(of: "<!-- end of \(section) -->", range: begin.upperBound..<text.endIndex))
        let table = ([head, head.map { _ in "---" }] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }
            .joined()
        let updated = text.replacingCharacters(in: begin.upperBound..<end.lowerBound, with: table)
        if ProcessInfo.processInfo.environment["COATY_UPDATE_DOCUMENTS"] == "1" {
            try updated.write(to: url, atomically: true, encoding: .utf8)
        } else {
            #expect(text == updated, "run this test with COATY_UPDATE_DOCUMENTS=1 to update the document")
        }
    }
}
