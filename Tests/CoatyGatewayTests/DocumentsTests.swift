import Base
import Foundation
import TestSupport
import Testing

@testable import CoatyGateway

/// The Markdown documents: their structure, their links, the recipes, and the commands that use the demo agent.
@Suite(.exclusive) struct DocumentsTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL

    /// The documents by their paths in the repository.
    private static func documents() throws -> [String: String] {
        let files = try #require(FileManager.default.enumerator(atPath: root.path))
        var documents: [String: String] = [:]
        for case let path as String in files {
            if path.hasPrefix(".") {
                files.skipDescendants()
            } else if path.hasSuffix(".md") {
                documents[path] = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            }
        }
        return documents
    }

    /// Returns the anchors that the headings of a document have on GitHub.
    private static func anchors(_ text: String) -> Set<String> {
        Set(
            text.matches(of: /(?m)^#+ (.+)$/).map { heading in
                heading.1.lowercased().filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
                    .replacing(" ", with: "-")
            }
        )
    }

    @Test func codeBlocksAreClosed() throws {
        let documents = try Self.documents()
        #expect(documents.count > 15)
        for (path, text) in documents {
            var isOpen = false
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                let line = line.drop { $0 == " " }
                guard line.hasPrefix("```") else { continue }
                // A closing fence has no language, so a language inside a block shows that a fence is missing.
                #expect(!isOpen || line == "```", "\(path):\(number + 1)")
                isOpen.toggle()
            }
            #expect(!isOpen, "\(path)")
        }
    }

    @Test func linkTargetsExist() throws {
        let documents = try Self.documents()
        var count = 0
        for (path, text) in documents {
            for match in text.matches(of: /\]\(([^)\s]+)\)/) where !match.1.contains("://") {
                count += 1
                let parts = match.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let source = Self.root.appending(path: path)
                let folder = source.deletingLastPathComponent()
                let target = parts[0].isEmpty ? source : folder.appending(path: String(parts[0]))
                #expect(FileManager.default.fileExists(atPath: target.path), "\(path): \(match.1)")
                guard parts.count == 2, target.pathExtension == "md" else { continue }
                let anchors = Self.anchors(try String(contentsOf: target, encoding: .utf8))
                #expect(anchors.contains(String(parts[1])), "\(path): \(match.1)")
            }
        }
        #expect(count > 50)
    }

    /// `deploy/release` sets the version in these files too.
    @Test(arguments: [
        ("openapi.yaml", #"(?m)^ +version: ([\d.]+)$"#),
        ("Sources/CoatyGateway/Console/package.json", #"(?m)^  "version": "(.*)",$"#),
        ("deploy/compose/compose.yaml", #"image: coaty-gateway:(.*)"#),
        ("deploy/kubernetes/kustomization.yaml", #"newTag: (.*)"#),
    ])
    func filesHaveTheVersionOfTheGateway(path: String, pattern: String) throws {
        let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
        let versions = text.matches(of: try Regex(pattern, as: (Substring, Substring).self)).map(\.output.1)
        #expect(!versions.isEmpty && versions.allSatisfy { $0 == GatewayVersion.text }, "\(versions)")
    }

    /// The gateway accepts each configuration of docs/security.md.
    @Test func recipesAreValidConfigurations() throws {
        let text = try #require(try Self.documents()["docs/security.md"])
        let folder = FileManager.default.temporaryDirectory.appending(path: "recipes-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (named, configuration) = (folder.appending(path: "named").path, folder.appending(path: "recipe.yaml").path)
        // The settings require that some of the named files can be read.
        try "".write(toFile: named, atomically: true, encoding: .utf8)
        let recipes = text.matches(of: /```yaml\n([^`]*)```/).map { String($0.output.1) }
        #expect(recipes.count >= 7)
        for recipe in recipes {
            let usable = recipe.replacing(/\/etc\/coaty-gateway\/[\w.\-]+/, with: named)
            try usable.write(toFile: configuration, atomically: true, encoding: .utf8)
            #expect(throws: Never.self, "\(recipe)") {
                _ = try AccessMode(GatewaySettings(flags: [:], environment: [:], file: configuration)) { "" }
            }
        }
    }

    /// The README lists each document of the folder.
    @Test func eachDocumentIsInTheMapOfTheReadme() throws {
        let documents = try Self.documents()
        let readme = try #require(documents["README.md"])
        let map = try #require(readme.components(separatedBy: "\n## ").first { $0.hasPrefix("Documentation") })
        for path in documents.keys where path.hasPrefix("docs/") {
            #expect(map.contains("](\(path))"), "\(path)")
        }
        #expect(map.firstMatch(of: /\]\(([^)]+)\)/)?.1 == "docs/concepts.md", "the concepts come first")
    }

    /// Each command prints what the document shows, except for values that differ from run to run.
    @Test(arguments: [("README.md", "Five minutes", 6), ("docs/operations-of-agents.md", "", 3)])
    func commandsPrintTheShownOutput(path: String, heading: String, commands: Int) throws {
        let document = try #require(try Self.documents()[path])
        let begin = try #require(
            heading.isEmpty ? document.startIndex : document.range(of: "\n## \(heading)")?.upperBound
        )
        let rest = document[begin...]
        let end = heading.isEmpty ? rest.endIndex : rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex
        let section = rest[..<end]
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0", "--demo", "true"])
        try waitUntil("the demo agent is there") {
            try gateway.request("GET", "/v1/objects?objectType=com.example.demo.Thermometer").text.contains("Demo")
        }
        var count = 0
        for match in section.matches(of: /```\n(curl (?:[^`]*))```\n```\n([^`]*)```/) {
            count += 1
            var command = match.1.replacing("localhost:8080", with: "localhost:\(gateway.port)")
            // This command runs until the user stops it.
            if command.contains("/v1/sse/") { command = "timeout 10 \(command.dropLast()) | head -7" }
            let printed = try Self.run(String(command))
            let (shown, lines) = (match.2.split(separator: "\n"), printed.split(separator: "\n"))
            #expect(lines.count >= shown.count, "\(command)\n\(printed)")
            for (shown, line) in zip(shown, lines) {
                // Compare each part up to its first value that differs from run to run.
                for part in shown.split(separator: "…") {
                    #expect(line.contains(part.prefix { !$0.isNumber }), "\(part): \(command)\n\(printed)")
                }
            }
            #expect(!printed.isEmpty && !printed.contains("urn:coaty-gateway:problem"), "\(command)\n\(printed)")
        }
        #expect(count == commands)
    }

    private static func run(_ command: String) throws -> String {
        _ = try TestProgram.curl.path()
        let process = try ChildProcess("/bin/bash", ["-c", "\(command)\nprintf '\\nended'"])
        try waitUntil("the command ends") { process.output.hasSuffix("\nended") }
        return String(process.output.dropLast(6))
    }
}
