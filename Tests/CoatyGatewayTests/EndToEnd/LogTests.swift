import Foundation
import TestSupport
import Testing

/// The log of a gateway.
@Suite(.exclusive) struct LogTests {
    private static let file = AccessFile(tokens: [.init("operator", "admin")])

    private func reload(_ scene: AccessScene, _ settings: String) throws -> String {
        try (Self.file.yaml + settings).write(toFile: scene.path, atomically: false, encoding: .utf8)
        return try scene.post("/v1/admin/reload", "", as: "operator").text
    }

    @Test func linesAreJSONObjectsAlsoWithHostileText() throws {
        let scene = try Scene(["--log-format", "json", "--log-level", "trace"])
        let topic = "coaty/3/-/ADV:Identity/\u{2028}\",\"level\":\"x\u{202E}"
        try scene.agent.publish(topic, "no JSON")
        let entry = try scene.gateway.entry("the event is logged") { $0.message.hasPrefix("dropped ") }
        #expect(entry["source"]?.contains("\u{2028}\",\"level\":\"x\u{202E}") == true)
        #expect(entry.level == "notice" && entry.label == "broker")
        try scene.gateway.stop()
        let labels = Set(try scene.gateway.entries().map(\.label))
        #expect(labels.isSuperset(of: ["gateway", "broker", "http"]), "\(labels)")
    }

    @Test func levelsOfLabelsChangeWithAReload() throws {
        let scene = try AccessScene(Self.file, ["--log-format", "json"])
        func pause() throws {
            for path in ["/v1/admin/pause", "/v1/admin/resume"] {
                #expect(try scene.post(path, "", as: "operator").status == 200)
            }
        }
        try pause()
        #expect(try reload(scene, "log-levels: gateway=debug,http=error\n") == #"{"changed":["log-levels"]}"#)
        try pause()
        _ = try scene.gateway.entry("the tree is logged") { $0.level == "debug" && $0.message == "listener: active" }
        #expect(try reload(scene, "log-level: debug\nlog-levels: gateway=info\n").contains("log-levels"))
        let count = try scene.gateway.entries().filter { $0.label == "gateway" && $0.level == "debug" }.count
        try pause()
        try scene.gateway.stop()
        let entries = try scene.gateway.entries()
        #expect(entries.filter { $0.label == "gateway" && $0.level == "debug" }.count == count)
        // The level applies only since the second reload.
        #expect(entries.contains { $0.label == "http" && $0.message == "HTTP server stopped" })
        #expect(!entries.contains { $0.message == "HTTP server started" })
        #expect(entries.filter { $0.message == "resumed" }.count == 3, "responses to an operator are not combined")
    }

    @Test func formatChangesWithAReload() throws {
        let scene = try AccessScene(Self.file)
        #expect(try reload(scene, "log-format: json\n") == #"{"changed":["log-format"]}"#)
        try waitUntil("the reload is logged in the new format") {
            scene.gateway.log.split(separator: "\n").contains {
                $0.hasPrefix("{") && $0.contains(#""message":"configuration reloaded","changed":"log-format""#)
            }
        }
    }

    /// Repeated refusals of one client do not fill the log.
    @Test func repeatedMessagesAreCounted() throws {
        let scene = try Scene(["--limit", "maximum-subscriptions-per-client=1"])
        let client = try scene.gateway.frameClient()
        for number in 0..<50 { _ = try client.ask("subscribe", #""event":"channel","channelId":"\#(number)""#) }
        try scene.gateway.stop()
        let lines = scene.gateway.log.split(separator: "\n").filter {
            $0.contains("refused a request: the client has used up its share")
        }
        #expect(lines.count == 2, "\(lines)")
        let last = try #require(lines.last)
        #expect(last.contains("(repeated 48 times, until ") && last.hasSuffix(" repeated=48"), "\(lines)")
    }

    /// The count is written even if no further message follows and the gateway keeps running.
    @Test func countIsWrittenAtTheEndOfTheInterval() throws {
        let scene = try Scene(["--limit", "maximum-subscriptions-per-client=1"])
        let client = try scene.gateway.frameClient()
        for number in 0..<3 { _ = try client.ask("subscribe", #""event":"channel","channelId":"\#(number)""#) }
        try waitUntil("the count is written", within: 15) { scene.gateway.log.contains("(repeated once, at ") }
    }
}
