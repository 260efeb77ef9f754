import Foundation

extension Log {
    /// Returns the current time in the format of ``logDate``: `2026-11-21T08:23:02.075Z`.
    static func dateNow() -> String {
        Date.ISO8601FormatStyle(includingFractionalSeconds: true).format(Date())
    }
}

extension LogHost {
    /// Creates the host of this process.
    init(current agentInfo: AgentInfo?) {
        self.init(
            agentInfo: agentInfo.flatMap { try? Payload(encoding: $0) }.map { AnyCodable($0.json) },
            pid: Double(ProcessInfo.processInfo.processIdentifier)
        )
    }
}
