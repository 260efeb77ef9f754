import Foundation
import Testing

/// docs/operations.md has instructions for each alert, and for each log line that requires action.
@Suite struct RunbookTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Source folders of agents that are not part of the gateway.
    private static let foreign = ["Sources/CoatySensorThings/", "Sources/Coaty/Controllers/", "Sources/Coaty/Logging/"]

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the texts of calls that log at `warning` or above, or at a level that is determined elsewhere, with `…`
    /// for values, and their places in the source.
    private static func logged() throws -> [(text: String, place: String)] {
        let calls =
            /\.(warning|error|critical)\(\s*"|log\(\s*level: ([^,"]|\?[^,]*)+,\s*"|LogLine\(\.\w+, \.(warning|error|critical), "/
        let files = try #require(FileManager.default.enumerator(atPath: root.path + "/Sources"))
        var logged: [(text: String, place: String)] = []
        for case let file as String in files where file.hasSuffix(".swift") {
            let path = "Sources/" + file
            guard !foreign.contains(where: path.hasPrefix) else { continue }
            let source = try text(path)
            for match in source.matches(of: calls) {
                let call = match.output.0
                let isGrave = call.contains(/\.(warning|error|critical)\b/)
                if !isGrave, call.contains(/\.(trace|debug|info|notice)\b/) { continue }
                logged.append((literal(source[match.range.upperBound...]), path))
            }
        }
        return logged
    }

    /// Returns the text of a literal, given the source after its opening quotation mark.
    private static func literal(_ source: Substring) -> String {
        var (text, depth, previous) = ("", 0, Character(" "))
        for character in source {
            defer { previous = character }
            if depth > 0 {
                if character == "(" { depth += 1 }
                if character == ")" { depth -= 1 }
            } else if character == "(", previous == "\\" {
                depth = 1
                text.removeLast()
                text += "…"
            } else if character == "\"" {
                break
            } else {
                text.append(character)
            }
        }
        return text
    }

    /// Returns the rows of a table: the first cell as the name, and the other cells.
    private static func rows(_ document: String, _ section: String) throws -> [(name: String, cells: [String])] {
        let begin = try #require(document.range(of: "<!-- \(section) -->\n"))
        let end = try #require(
            document.range(of: "<!-- end of \(section) -->", range: begin.upperBound..<document.endIndex)
        )
        return document[begin.upperBound..<end.lowerBound].split(separator: "\n").filter { $0.hasPrefix("| `") }.map {
            let cells = $0.dropFirst().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            return (cells[0].trimmingCharacters(in: ["`"]), Array(cells[1...]))
        }
    }

    @Test func eachLogLineThatAsksForActionHasARow() throws {
        let logged = try Self.logged()
        #expect(logged.count > 40, "the calls are found")
        let rows = try Self.rows(Self.text("docs/operations.md"), "log lines")
        let names = Set(rows.map(\.name))
        for (text, place) in logged where !names.contains(text) {
            Issue.record("\(place): docs/operations.md has no row for: \(text)")
        }
        for name in names.subtracting(logged.map(\.text)) { Issue.record("no call logs: \(name)") }
        #expect(rows.count == names.count, "each text has one row")
        for (name, cells) in rows { #expect(cells.count == 3 && cells[..<2].allSatisfy { $0.count > 3 }, "\(name)") }
    }

    /// A text that is not a literal cannot be found, neither by this test nor by an operator.
    @Test func logLinesAreLiterals() throws {
        let files = try #require(FileManager.default.enumerator(atPath: Self.root.path + "/Sources"))
        for case let file as String in files where file.hasSuffix(".swift") {
            let source = try Self.text("Sources/" + file)
            for match in source.matches(of: /ogger(\.\w+\([^()]*\))*\.(warning|error|critical)\(\s*[^"\s]/) {
                Issue.record("\(file): \(match.output.0)")
            }
        }
    }

    @Test func eachAlertHasARow() throws {
        let alerts = try Self.text("deploy/prometheus/alerts.yaml").matches(of: /- alert: (\w+)/).map {
            String($0.output.1)
        }
        let rows = try Self.rows(Self.text("docs/operations.md"), "alerts").map(\.name)
        #expect(!alerts.isEmpty && Set(alerts) == Set(rows) && alerts.count == rows.count)
    }
}
