import Foundation
import TestSupport
import Testing

/// One line of a gateway's log in JSON.
struct LogEntry {
    let json: [String: Any]

    subscript(name: String) -> String? { json[name] as? String }
    var message: String { self["message"] ?? "" }
    var label: String { self["label"] ?? "" }
    var level: String { self["level"] ?? "" }
}

extension GatewayProcess {
    /// Returns the lines of the log.
    ///
    /// - Throws: an error if a line is not a JSON object.
    func entries() throws -> [LogEntry] {
        // The last line may be incomplete.
        try log.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { line in
            let json = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return LogEntry(json: try #require(json, "\(line)"))
        }
    }

    /// Waits for a line of the log, and returns the last one that matches.
    func entry(_ what: String, where matches: (LogEntry) -> Bool) throws -> LogEntry {
        var found: LogEntry?
        try waitUntil(what) {
            found = try entries().last(where: matches)
            return found != nil
        }
        return try #require(found)
    }

    /// Waits for a line of the request log, and returns it.
    func request(_ message: String, id: String? = nil) throws -> LogEntry {
        try entry("\(message) in the log") {
            $0.label == "requests" && $0.message == message && (id == nil || $0["id"] == id)
        }
    }
}
