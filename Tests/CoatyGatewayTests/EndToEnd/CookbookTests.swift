import Foundation
import TestSupport
import Testing

/// The examples of docs/cookbook.md, run against a gateway.
@Suite(.exclusive) struct CookbookTests {
    private static let document = URL(fileURLWithPath: #filePath + "/../../../../docs/cookbook.md").standardizedFileURL

    @Test func everyTaskProducesTheDocumentedOutput() throws {
        let parts = try String(contentsOf: Self.document, encoding: .utf8).components(separatedBy: "```yaml\n")
        try #require(parts.count == 2)
        let rest = parts[1].components(separatedBy: "```\n")
        let folder = FileManager.default.temporaryDirectory.appending(path: "cookbook-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let configuration = folder.appending(path: "greenhouse.yaml")
        try Data(rest[0].utf8).write(to: configuration)

        let sections = try CookbookSection.parse(parts[0] + rest.dropFirst().joined(separator: "```\n"))
        #expect(sections.count >= 15)
        let scene = try Scene(["--config", configuration.path])
        for section in sections {
            do {
                try CookbookRun(scene: scene).run(section)
            } catch {
                Issue.record("\(section.title): \(error)")
            }
        }
    }

    @Test func wrongDocumentFailsTheCheck() throws {
        let scene = try Scene()
        let right = [
            "```sh\ncurl -s http://127.0.0.1:8080/healthz\n```\n```json\n{\"status\":\"ok\"}\n```",
            "```sh\necho one two\n```\n```text\none …\n```",
            "```ws\n> {\"op\":\"ping\",\"id\":\"a\"}\n< {\"op\":\"pong\",\"id\":\"…\"}\n```",
        ]
        for text in right {
            for section in try CookbookSection.parse("## t\n\(text)\n") { try CookbookRun(scene: scene).run(section) }
        }
        let wrong = [
            "```sh\ncurl -s http://127.0.0.1:8080/healthz\n```\n```json\n{\"status\":\"o\"}\n```",
            "```sh\ncurl -s http://127.0.0.1:8080/healthz\n```\n```json\n{}\n```",
            "```sh\ncurl -s http://127.0.0.1:8080/healthz\n```\n```json\n{\"status\":\"ok\",\"more\":1}\n```",
            "```sh\ncurl -s http://localhost:8080/healthz\n```\n```json\n{\"status\":\"ok\"}\n```",
            "```sh\necho one\necho two\n```\n```text\none\n```",
            "```sh\nfalse\n```\n```text\n\n```",
            "```sh\necho one\n```",
            "```text\none\n```",
            "```ws\n> {\"op\":\"ping\",\"id\":\"a\"}\n< {\"op\":\"pong\",\"id\":\"b\"}\n```",
            "```ws\n> {\"op\":\"ping\",\"id\":\"a\"}\n```",
            "```ws\n{\"op\":\"ping\",\"id\":\"a\"}\n```",
            "```swift\n```",
            "```sh\necho one",
        ]
        for text in wrong {
            #expect(throws: (any Error).self, "\(text)") {
                for section in try CookbookSection.parse("## t\n\(text)\n") {
                    try CookbookRun(scene: scene).run(section)
                }
            }
        }
    }
}

struct CookbookError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A task of the cookbook: its fenced blocks in order.
struct CookbookSection {
    enum Block: Equatable {
        case shell(String)
        case socket([String])
        case json(String)
        case text(String)

        var isOutput: Bool {
            switch self {
            case .json, .text: true
            case .shell, .socket: false
            }
        }
    }

    let title: String
    var blocks: [Block] = []
    /// The index of the shell block that produces an output, by the index of the output.
    private(set) var sources: [Int: Int] = [:]

    static func parse(_ document: String) throws -> [CookbookSection] {
        var sections: [CookbookSection] = []
        var fence: (kind: String, lines: [String])?
        for line in document.components(separatedBy: "\n") {
            if let (kind, lines) = fence {
                if line == "```" {
                    guard !sections.isEmpty else { throw CookbookError("a block before the first task") }
                    sections[sections.count - 1].blocks.append(try block(kind, lines))
                    fence = nil
                } else {
                    fence = (kind, lines + [line])
                }
            } else if line.hasPrefix("```") {
                fence = (String(line.dropFirst(3)), [])
            } else if line.hasPrefix("## ") {
                sections.append(CookbookSection(title: String(line.dropFirst(3))))
            }
        }
        guard fence == nil else { throw CookbookError("a block without end") }
        for index in sections.indices { try sections[index].assignOutputs() }
        return sections
    }

    private static func block(_ kind: String, _ lines: [String]) throws -> Block {
        let text = lines.joined(separator: "\n")
        switch kind {
        case "sh": return .shell(text)
        case "json": return .json(text)
        case "text": return .text(text)
        case "ws":
            guard lines.allSatisfy({ $0.hasPrefix("> ") || $0.hasPrefix("< ") }) else {
                throw CookbookError("a line of a conversation begins with neither > nor <")
            }
            return .socket(lines)
        default: throw CookbookError("unknown block \(kind)")
        }
    }

    /// Assigns each output to the shell block directly before it, or else to the first shell block that has no output
    /// yet.
    private mutating func assignOutputs() throws {
        var waiting: [Int] = []
        var checks = 0
        for (index, block) in blocks.enumerated() {
            switch block {
            case .shell: waiting.append(index)
            case .socket(let lines): checks += lines.count { $0.hasPrefix("< ") }
            case .json, .text:
                guard
                    let source = waiting.last == index - 1
                        ? waiting.popLast() : waiting.isEmpty ? nil : waiting.removeFirst()
                else { throw CookbookError("\(title): an output of nothing") }
                sources[index] = source
                checks += 1
            }
        }
        guard checks > 0 else { throw CookbookError("\(title): nothing is checked") }
    }
}

/// Runs the blocks of one task.
final class CookbookRun {
    private static let limit: TimeInterval = 30
    private static let end = "\nended with "

    private let scene: Scene
    private var processes: [Int: ChildProcess] = [:]
    private lazy var socket = Result {
        try WebSocketClient.open(
            port: scene.gateway.port,
            path: "/v1/ws",
            headers: [("Sec-WebSocket-Protocol", "coaty.v1")]
        )
    }
    /// The values in the last frames of the client, by member name.
    private var received: [String: Any] = [:]

    init(scene: Scene) { self.scene = scene }

    func run(_ section: CookbookSection) throws {
        for (index, block) in section.blocks.enumerated() {
            switch block {
            case .shell(let script):
                let process = try start(script)
                processes[index] = process
                guard let output = section.sources.first(where: { $0.value == index })?.key else {
                    let text = try finish(process)
                    guard text.isEmpty else { throw CookbookError("nobody expected\n\(text)") }
                    continue
                }
                // A command that receives events from later blocks must listen first. It listens when it has printed
                // something.
                if output != index + 1, case .shell = section.blocks[index + 1] {
                    try waitUntil("the command listens", within: Self.limit) { !process.output.isEmpty }
                }
            case .socket(let lines):
                for line in lines { try converse(line) }
            case .json(let expected):
                let text = try finish(processes[section.sources[index] ?? -1])
                guard try CookbookText.isLike(CookbookText.json(expected), CookbookText.json(text)) else {
                    throw CookbookError("expected\n\(expected)\ngot\n\(text)")
                }
            case .text(let expected):
                let source = section.sources[index] ?? -1
                guard let process = processes[source] else { throw CookbookError("no command") }
                if case .shell(let script) = section.blocks[source], script.contains("/v1/sse/") {
                    // The command runs until the test ends.
                    let deadline = Date(timeIntervalSinceNow: Self.limit)
                    while !CookbookText.matches(expected, process.output) {
                        guard Date() < deadline else {
                            throw CookbookError("expected\n\(expected)\ngot\n\(process.output)")
                        }
                        usleep(5_000)
                    }
                } else {
                    let text = try finish(process)
                    guard CookbookText.matches(expected, text) else {
                        throw CookbookError("expected\n\(expected)\ngot\n\(text)")
                    }
                }
            }
        }
    }

    /// Starts a script; `timeout` ends its remaining processes after the test.
    private func start(_ script: String) throws -> ChildProcess {
        let script = script.replacing("http://127.0.0.1:8080", with: "http://127.0.0.1:\(scene.gateway.port)")
            .replacing("'Last-Event-ID: …'", with: "'Last-Event-ID: \(received["cursor"] ?? "")'")
            .replacing("-h 127.0.0.1 -p 1883", with: "-h 127.0.0.1 -p \(scene.broker.port)")
        guard !script.contains("8080"), !script.contains("1883") else {
            throw CookbookError("an unknown address: \(script)")
        }
        for program in [TestProgram.curl, .mosquittoClients] { _ = try program.path() }
        let programs = URL(fileURLWithPath: GatewayProcess.binary).deletingLastPathComponent().path
        let environment = ProcessInfo.processInfo.environment
        return try ChildProcess(
            "/bin/bash",
            ["-c", #"timeout 60 bash -euo pipefail -c "$1"; printf '\nended with %d.' $?"#, "bash", script],
            environment: environment.merging(["PATH": "\(programs):\(environment["PATH"] ?? "")"]) { $1 }
        )
    }

    /// Waits until a command has ended, and returns its output.
    private func finish(_ process: ChildProcess?) throws -> String {
        guard let process else { throw CookbookError("no command") }
        try waitUntil("the command ends", within: Self.limit) {
            process.output.hasSuffix(".") && process.output.contains(Self.end)
        }
        let parts = process.output.components(separatedBy: Self.end)
        guard parts.last == "0." else { throw CookbookError("the command has failed: \(process.output)") }
        return parts[0]
    }

    private func converse(_ line: String) throws {
        let text = String(line.dropFirst(2))
        if line.hasPrefix("> ") {
            guard let frame = try CookbookText.json(text) as? [String: Any] else {
                throw CookbookError("no frame: \(text)")
            }
            // A frame may contain values that the client has received.
            let filled = frame.mapValues { $0 as? String == "…" }.filter(\.value).keys
            var sent = text
            for name in filled {
                guard let value = received[name == "since" ? "cursor" : name] as? String else {
                    throw CookbookError("the client has not received a value for \(name)")
                }
                sent = sent.replacing("\"\(name)\":\"…\"", with: "\"\(name)\":\"\(value)\"")
            }
            guard !sent.contains("…") else { throw CookbookError("cannot say \(text)") }
            try socket.get().sendText(sent)
        } else {
            let got = try nextFrame()
            guard try CookbookText.isLike(CookbookText.json(text), CookbookText.json(got)) else {
                throw CookbookError("expected\n\(text)\ngot\n\(got)")
            }
            if let frame = try CookbookText.json(got) as? [String: Any] { received.merge(frame) { $1 } }
        }
    }

    /// Returns the client's next frame. Skips the gateway's own discovery of IO contexts and nodes, which it may send
    /// at any time after an agent has come.
    private func nextFrame() throws -> String {
        while true {
            switch try socket.get().receive(deadline: Date(timeIntervalSinceNow: Self.limit)) {
            case .ping(let payload): try socket.get().sendPong(payload)
            case .text(let text) where text.contains(#""data":{"coreTypes":["IoContext","IoNode"]}"#): continue
            case .text(let text): return text
            case let other: throw CookbookError("expected a frame, got \(other)")
            }
        }
    }
}

/// Expected texts, in which `…` stands for anything: in JSON for any value, any part of a string, or further members of
/// an object; in other text for any part of a line, or, as the only text in a line, for any lines.
enum CookbookText {
    static func json(_ text: String) throws -> Any {
        var valid = ""
        var isInString = false
        var isEscaped = false
        var last: Character = " "
        for character in text {
            if character == "…", !isInString {
                valid += last == ":" || last == "[" ? "\"…\"" : "\"…\":\"…\""
            } else {
                valid.append(character)
            }
            if character == "\"", !isEscaped { isInString.toggle() }
            isEscaped = character == "\\" && !isEscaped
            if !character.isWhitespace { last = character }
        }
        do {
            return try JSONSerialization.jsonObject(with: Data(valid.utf8), options: .fragmentsAllowed)
        } catch {
            throw CookbookError("no JSON: \(text)")
        }
    }

    static func isLike(_ expected: Any, _ got: Any) -> Bool {
        switch (expected, got) {
        case ("…" as String, _): true
        case (let expected as String, let got as String): matches(expected, got)
        case (let expected as [String: Any], let got as [String: Any]):
            (expected["…"] != nil || expected.count == got.count)
                && expected.allSatisfy { name, value in name == "…" || got[name].map { isLike(value, $0) } ?? false }
        case (let expected as [Any], let got as [Any]):
            expected.count == got.count && zip(expected, got).allSatisfy(isLike)
        case (let expected as NSNumber, let got as NSNumber): expected == got
        default: expected is NSNull && got is NSNull
        }
    }

    static func matches(_ expected: String, _ got: String) -> Bool {
        let pattern = expected.trimmingCharacters(in: .newlines).components(separatedBy: "\n").map { line in
            line == "…"
                ? "[\\s\\S]*"
                : line.components(separatedBy: "…").map(NSRegularExpression.escapedPattern).joined(separator: ".*")
        }
        return got.trimmingCharacters(in: .newlines)
            .range(of: "^" + pattern.joined(separator: "\n") + "$", options: .regularExpression) != nil
    }
}
