import Foundation
import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import CoatyGateway
@testable import Feeds
@testable import Logs

/// docs/operations.md has instructions for each alert, docs/limits.md for each bound, and docs/log-lines.md for each
/// log line that requires action.
@Suite(.exclusive) struct RunbookTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Source folders of agents that are not part of the gateway.
    private static let foreign = [
        "Sources/CoatySensorThings/", "Sources/Coaty/Controllers/", "Sources/Coaty/Logging/", "Sources/Coaty/Values/",
    ]

    /// Lines at `notice` that require action, and the files that log them.
    private static let notices = [
        ("refused a request: the client has used up its share", "Base/Accounts/Refusals.swift"),
        ("refused a request: all clients together have used up the resource", "Base/Accounts/Refusals.swift"),
        (
            "delayed events and responses for a client: it received more than its rate allows",
            "Base/Accounts/Refusals.swift"
        ),
        (
            "events were dropped for a client, because its subscriptions take more work than its share",
            "Feeds/FeedCounts.swift"
        ),
        ("dropped …", "Coaty/Communication/DropLog.swift"),
        ("authentication failed", "Access/AuditLog.swift"),
        (
            "a page of another origin was refused; allowed-origins lists the origins that are allowed",
            "Access/AccessControl.swift"
        ),
        (
            "a request under a public host name was refused; allowed-hosts lists the names that are allowed",
            "Access/AccessControl.swift"
        ),
        (
            "no libuv event library for libwebsockets: poll(2) serves, slowly with many connections",
            "WebSocketServer/Engine.swift"
        ),
    ]

    /// Lines at `notice` that require no action.
    private static let quietNotices: Set = [
        "paused: new work is refused", "resumed", "HTTP server stops before all answers were sent",
    ]

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the texts of calls that log at `warning` or above, or at a level that is determined elsewhere, with `…`
    /// for values, and their places in the source.
    private static func logged() throws -> [(text: String, place: String)] {
        let calls =
            /\.(warning|error|critical)\(\s*"|log\(\s*level: ([^,"]|\?[^,]*)+,\s*"|LogLine\(\.\w+, \.(warning|error|critical), "/
        var logged: [(text: String, place: String)] = []
        for (path, source) in try sources() {
            for match in source.matches(of: calls) {
                let call = match.output.0
                let isGrave = call.contains(/\.(warning|error|critical)\b/)
                if !isGrave, call.contains(/\.(trace|debug|info|notice)\b/) { continue }
                logged.append((literal(source[match.range.upperBound...]), path))
            }
        }
        return logged
    }

    /// Returns the texts of calls that log literals at `notice`, and their places in the source.
    private static func loggedNotices() throws -> [(text: String, place: String)] {
        try sources().flatMap { path, source in
            source.matches(of: /\.notice\(\s*"/).map { (literal(source[$0.range.upperBound...]), path) }
        }
    }

    /// Returns the Swift files whose log lines the runbook describes.
    private static func sources() throws -> [(path: String, text: String)] {
        let files = try #require(FileManager.default.enumerator(atPath: root.path + "/Sources"))
        return try files.compactMap { ($0 as? String).map { "Sources/" + $0 } }
            .filter { path in path.hasSuffix(".swift") && !foreign.contains(where: path.hasPrefix) }
            .map { ($0, try text($0)) }
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

    /// Returns the rows of a table without its head: the first cell as the name, and the other cells.
    private static func rows(_ document: String, _ section: String) throws -> [(name: String, cells: [String])] {
        let begin = try #require(document.range(of: "<!-- \(section) -->\n"))
        let end = try #require(
            document.range(of: "<!-- end of \(section) -->", range: begin.upperBound..<document.endIndex)
        )
        return document[begin.upperBound..<end.lowerBound].split(separator: "\n").dropFirst(2).map {
            let cells = $0.dropFirst().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            return (cells[0].trimmingCharacters(in: ["`"]), Array(cells[1...]))
        }
    }

    /// Returns the types of the problems with these statuses that the code returns, besides those of ``Resource``.
    private static func problemTypes() throws -> Set<String> {
        let problems = /"([a-z\-]+)",\s*(?:title: )?"[^"]*",\s*(?:status: )?(?:413|429|431|503)\b/
        let files = try #require(FileManager.default.enumerator(atPath: root.path + "/Sources"))
        var types: Set<String> = []
        for case let file as String in files where file.hasSuffix(".swift") {
            types.formUnion(try text("Sources/" + file).matches(of: problems).map { String($0.output.1) })
        }
        return types
    }

    /// Returns the values of the label `limit` of the metric.
    private static func limitLabels() throws -> Set<String> {
        let kinds = Resource.allCases.map(Refusals.Kind.resource) + Rate.Kind.allCases.map(Refusals.Kind.rate)
        // The kinds without an associated value.
        let others = try text("Sources/Base/Accounts/Refusals.swift").matches(of: /case \.\w+: "([a-z ]+)"/)
        return Set(kinds.map(\.label) + others.map { String($0.output.1.replacing(" ", with: "_")) })
    }

    @Test func eachLogLineThatAsksForActionHasARow() throws {
        let logged = try Self.logged()
        #expect(logged.count > 40, "the calls are found")
        let rows = try Self.rows(Self.text("docs/log-lines.md"), "log lines")
        let names = Set(rows.map(\.name))
        for (text, place) in logged where !names.contains(text) {
            Issue.record("\(place): docs/log-lines.md has no row for: \(text)")
        }
        let known = logged.map(\.text) + Self.notices.map(\.0)
        for name in names.subtracting(known) { Issue.record("no call logs: \(name)") }
        #expect(rows.count == names.count, "each text has one row")
        for (name, cells) in rows { #expect(cells.count == 3 && cells[..<2].allSatisfy { $0.count > 3 }, "\(name)") }
    }

    @Test func eachNoticeThatAsksForActionHasARow() throws {
        let names = Set(try Self.rows(Self.text("docs/log-lines.md"), "log lines").map(\.name))
        for (text, file) in Self.notices {
            #expect(names.contains(text), "docs/log-lines.md has no row for: \(text)")
            let source = try Self.text("Sources/" + file)
            let literals = source.matches(of: /"/).map { Self.literal(source[$0.range.upperBound...]) }
            #expect(literals.contains(text), "\(file) does not log: \(text)")
        }
        let logged = try Self.loggedNotices()
        #expect(logged.count >= 8, "the calls are found")
        let listed = Self.quietNotices.union(Self.notices.map(\.0))
        for (text, place) in logged where !listed.contains(text) {
            Issue.record("\(place): does this line require action? \(text)")
        }
    }

    @Test func eachBoundHasARow() throws {
        let document = try Self.text("docs/limits.md")
        let problems = try Self.rows(document, "bounds")
        let names = problems.flatMap { $0.name.components(separatedBy: "`, `") }
        #expect(Set(names).count == names.count, "each name has one row")
        let (labels, types) = (try Self.limitLabels(), try Self.problemTypes())
        #expect(labels.count > 18 && types.count > 12, "they are found")
        let known = labels.union(types).union(Resource.allCases.map(\.problem.type))
        for name in known.subtracting(names) { Issue.record("docs/limits.md has no row for: \(name)") }
        let contract = try Self.text("openapi.yaml")
        for name in Set(names).subtracting(known) where !contract.contains("`urn:coaty-gateway:problem:\(name)`") {
            Issue.record("there is no such bound: \(name)")
        }

        let rows = try problems + Self.rows(document, "bounds without a problem")
        for (name, cells) in rows { #expect(cells.count == 3 && cells[..<2].allSatisfy { $0.count > 3 }, "\(name)") }
        let listed = Set(rows.flatMap { $0.cells[0].matches(of: /`([a-z]+(?:-[a-z]+)+)`/).map { String($0.output.1) } })
        for bound in Limits.bounds.map(\.name) {
            // A row for a resource includes its share.
            let total = bound.replacing(/-per-client$/, with: "")
            #expect(listed.contains(bound) || listed.contains(total), "docs/limits.md has no row for: \(bound)")
        }
        for name in listed.subtracting(GatewaySettings.all.map(\.name)) { Issue.record("no such setting: \(name)") }
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
