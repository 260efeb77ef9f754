import Foundation

extension Log {
    /// Now, as ``logDate`` has it: `2026-11-21T08:23:02.075Z`.
    static func dateNow() -> String {
        Date.ISO8601FormatStyle(includingFractionalSeconds: true).format(Date())
    }
}

extension LogHost {
    /// This process.
    init(current agentInfo: AgentInfo?) {
        self.init(
            agentInfo: agentInfo.flatMap { try? Payload(encoding: $0) }.map { AnyCodable($0.json) },
            pid: Double(ProcessInfo.processInfo.processIdentifier)
        )
    }
}
