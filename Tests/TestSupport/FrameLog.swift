import Foundation
import Synchronization

/// Frames that tests have sent and received, kept until they are checked against the schemas in `docs/websocket`.
///
/// Keeps a limited number of frames of each kind, because more frames of one kind show nothing new.
public final class FrameLog: Sendable {
    /// The log of all clients in this process.
    public static let shared = FrameLog()
    /// Maximum number of frames of each kind.
    private static let limit = 100
    private static let checker = """
        import collections, json, sys
        from jsonschema import Draft202012Validator
        folder = sys.argv[1]
        validators = {
            name: Draft202012Validator(json.load(open(f"{folder}/{name}.schema.json"))) for name in ("client", "gateway")
        }
        for line in sys.stdin:
            entry = json.loads(line)
            is_valid = validators[entry["schema"]].is_valid(entry["frame"])
            if is_valid != entry["valid"]:
                print("" if is_valid else "not", "valid by", entry["schema"], json.dumps(entry["frame"]))
        """

    private struct State {
        var entries: [String] = []
        var counts: [String: Int] = [:]
    }

    private let state = Mutex(State())

    /// Records a frame that the gateway has sent.
    public func received(_ frame: String) { note("gateway", frame, isValid: true) }

    /// Records a frame that a client has sent.
    ///
    /// - Parameter isValid: whether its schema must accept the frame, or refuse it.
    public func sent(_ frame: String, isValid: Bool) { note("client", frame, isValid: isValid) }

    private func note(_ schema: String, _ frame: String, isValid: Bool) {
        let json = (try? JSONSerialization.jsonObject(with: Data(frame.utf8))) as? [String: Any]
        let kind = "\(schema) \(json?["op"] ?? "") \(json?["event"] ?? "") \(isValid)"
        state.withLock { state in
            state.counts[kind, default: 0] += 1
            guard state.counts[kind, default: 0] <= Self.limit else { return }
            let line = frame.replacingOccurrences(of: "\n", with: " ")
            state.entries.append(#"{"schema":"\#(schema)","valid":\#(isValid),"frame":\#(line)}"#)
        }
    }

    /// The kinds of frames recorded since the last check: schema, op, event, and whether the frame must be valid.
    public var kinds: Set<String> { state.withLock { Set($0.counts.keys) } }

    /// Checks the frames recorded since the last check.
    ///
    /// - Throws: ``TestSupportError`` with the frames whose validity is not the expected one.
    public func check() throws {
        let entries = state.withLock { state in
            defer { state = State() }
            return state.entries
        }
        guard !entries.isEmpty else { return }
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../docs/websocket")
        let work = FileManager.default.temporaryDirectory.appending(path: "frames-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: work, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: work) }
        try Self.checker.write(to: work.appending(path: "check.py"), atomically: false, encoding: .utf8)
        try (entries.joined(separator: "\n") + "\n")
            .write(to: work.appending(path: "frames"), atomically: false, encoding: .utf8)
        let process = try ChildProcess(
            TestProgram.pythonWithJSONSchema.path(),
            [work.appending(path: "check.py").path, folder.path],
            input: work.appending(path: "frames").path,
            errors: work.appending(path: "errors").path
        )
        let status = try process.waitForEnd()
        let errors = (try? String(contentsOf: work.appending(path: "errors"), encoding: .utf8)) ?? ""
        guard status == 0, process.output.isEmpty else { throw TestSupportError("\(process.output)\(errors)") }
    }
}
