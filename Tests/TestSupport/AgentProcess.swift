public import Foundation
import Glibc

/// An agent in another process, connected to the broker under test: `Tests/TestAgent`, which reports what it receives.
public final class AgentProcess: Sendable {
    private let process: ChildProcess
    private let input: Int32
    private let folder: String
    /// The agent's source id.
    public let id: String

    /// Starts an agent, and returns when the broker has accepted all of its subscriptions.
    ///
    /// - Throws: ``TestSupportError`` if it is not ready within `limit` seconds.
    public init(brokerPort: UInt16, namespace: String = "-", within limit: TimeInterval = 30) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "agent-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        self.folder = folder
        guard mkfifo(folder + "/in", 0o600) == 0 else { throw TestSupportError("mkfifo: errno \(errno)") }
        // Open for reading too, so that `open` does not wait for the agent.
        input = open(folder + "/in", O_RDWR | O_CLOEXEC)
        let binary = URL(fileURLWithPath: GatewayProcess.binary).deletingLastPathComponent().appending(
            path: "test-agent"
        )
        let arguments = ["mqtt://127.0.0.1:\(brokerPort)", namespace]
        let process = try ChildProcess(binary.path, arguments, input: folder + "/in")
        self.process = process
        var ready: String?
        try waitUntil("the test agent is ready", within: limit) {
            ready = Self.lines(process.output).first?["ready"] as? String
            return ready != nil
        }
        id = ready ?? ""
    }

    deinit {
        // Kill before the input ends. Otherwise the agent would start to leave, and both its farewell and its will
        // would be published.
        process.signal(SIGKILL)
        close(input)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// The lines that the agent has written, each a JSON object.
    public var lines: [[String: Any]] { Self.lines(process.output) }

    private static func lines(_ output: String) -> [[String: Any]] {
        // The last line may be incomplete.
        output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .compactMap { (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any] }
    }

    /// Sends a line of JSON to the agent: `{"publish":…,"data":…}` or `{"request":…,"data":…}`.
    public func send(_ json: String) throws {
        let line = Array(json.utf8) + [UInt8(ascii: "\n")]
        guard write(input, line, line.count) == line.count else { throw TestSupportError("write: errno \(errno)") }
    }

    /// Waits for the first matching line of this `kind` (`event` or `response`) and name.
    ///
    /// - Throws: ``TestSupportError`` if there is none within 30 seconds.
    @discardableResult
    public func waitFor(
        _ kind: String,
        _ name: String,
        where matches: ([String: Any]) -> Bool = { _ in true }
    ) throws -> [String: Any] {
        var found: [String: Any]?
        do {
            try waitUntil("\(kind) \(name)") {
                found = lines.first { $0[kind] as? String == name && matches($0) }
                return found != nil
            }
        } catch {
            throw TestSupportError("the agent has no \(kind) \(name); it says:\n\(process.output)")
        }
        return found ?? [:]
    }
}
