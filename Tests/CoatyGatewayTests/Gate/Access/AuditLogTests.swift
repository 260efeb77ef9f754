import Foundation
import Logging
import TestSupport
import Testing

@testable import Access
@testable import Base

/// The audit log: one line for each denial and administrative operation.
@Suite(.exclusive) struct AuditLogTests {
    private let path = FileManager.default.temporaryDirectory.appending(path: "audit-\(UUID()).log").path
    private let claim = AccessRequest(verb: .publish, pattern: .channel, target: .channel(.init("hall\n\"x\"")))

    private func lines(_ count: Int) async throws -> [[String: Any]] {
        var lines: [String] = []
        try await untilTrue("\(count) lines") {
            lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
            return lines.count >= count
        }
        return try lines.map { try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
    }

    @Test func equalDenialsWithinASecondAreOneLine() async throws {
        let log = try AuditLog(.file(path), logger: Logger(label: "test"))
        defer { try? FileManager.default.removeItem(atPath: path) }
        for _ in 0..<1000 { log.denied(claim, by: .token("t")) }
        log.denied(claim, by: .token("u"))
        log.performed([AccessRequest(verb: .route, pattern: .contexts, target: .context(.init("c")))], by: .token("t"))
        let lines = try await lines(3)
        #expect(lines.count == 3)
        #expect(lines.map { $0["event"] as? String } == ["denied", "denied", "performed"])
        #expect(lines.map { $0["principal"] as? String } == ["t", "u", "t"])
        #expect(lines[0]["needs"] as? [String] == ["publish channel hall\n\"x\""])
        #expect(lines[2]["status"] as? Int == 200)
    }

    @Test func linesPerClientAreBounded() async throws {
        var limits = Limits()
        limits.auditLinesPerClient = 2
        let log = try AuditLog(.file(path), limits: limits, logger: Logger(label: "test"))
        defer { try? FileManager.default.removeItem(atPath: path) }
        for number in 0..<4 {
            let channel = AccessRequest(verb: .publish, pattern: .channel, target: .channel(.init("c\(number)")))
            log.denied(channel, by: .token("t"))
        }
        log.denied(claim, by: .token("u"))
        let lines = try await lines(3)
        #expect(lines.map { $0["principal"] as? String } == ["t", "t", "u"])
    }

    @Test func fileIsOpenedAgainAfterItWasRenamed() async throws {
        let log = try AuditLog(.file(path), logger: Logger(label: "test"))
        defer { try? FileManager.default.removeItem(atPath: path) }
        log.denied(claim, by: .token("t"))
        _ = try await lines(1)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        defer { try? FileManager.default.removeItem(atPath: path + ".1") }
        try log.reopen()
        log.denied(claim, by: .token("u"))
        #expect(try await lines(1).map { $0["principal"] as? String } == ["u"])
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
    }

    @Test func unusableFileIsAnError() {
        #expect(throws: InvalidConfiguration.self) {
            try AuditLog(.file("/nowhere/audit.log"), logger: Logger(label: "test"))
        }
    }
}
