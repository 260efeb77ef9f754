import Coaty
import Foundation
import Logging
import Testing
import TestSupport

@testable import Base
@testable import CoatyGateway
@testable import Network

/// State files of other versions, and of other processes.
@Suite(.exclusive) struct StateVersionTests {
    private typealias Folder = RoutingStoreTests.Folder

    private static func context(_ state: String) throws -> HostedContext { try RoutingStoreTests.context(state) }

    /// Rewrites a file with a header of an older version.
    private func downgrade(_ path: String, _ folder: Folder, to version: Int = 1) throws {
        let text = try StateFile.read(path).text
        let header = StateFile.header(text, version: version, writer: version == 1 ? nil : "0.1.0")
        try folder.put(Array((header + "\n").utf8) + text, at: path)
    }

    @Test(arguments: [1, 2]) func anOlderVersionIsReadAndUpgraded(version: Int) async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        try await folder.store(configured).save(Self.context("emergency")).value
        try downgrade(folder.file.path, folder, to: version)
        let old = try folder.bytes(folder.file.path)
        #expect(String(decoding: old.prefix(22), as: UTF8.self) == "coaty-gateway state \(version) ")
        #expect(try await folder.restart(configured) == "emergency")
        let header = String(decoding: try folder.bytes(folder.file.path).prefix { $0 != 10 }, as: UTF8.self)
        #expect(header.hasPrefix("coaty-gateway state 3 ") && header.hasSuffix(" \(GatewayVersion.text)"))
        // The older gateway can be started again with the previous file.
        #expect(try folder.bytes(folder.file.previousPath) == old)
        #expect(try await folder.restart(configured) == "emergency")
        #expect(folder.log.lines.count { $0.contains("upgrading the stored state to version 3") } == 1)
    }

    @Test(arguments: [false, true]) func aNewerVersionIsRefusedUntouched(isPrevious: Bool) async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        try await store.save(Self.context("first")).value
        try await store.save(Self.context("second")).value
        let path = isPrevious ? folder.file.previousPath : folder.file.path
        // The older of the files could be upgraded.
        try downgrade(isPrevious ? folder.file.path : folder.file.previousPath, folder)
        try folder.put("coaty-gateway state 4 whatever follows\n\u{1}".utf8, at: path)
        let before = try [folder.file.path, folder.file.previousPath].map(folder.bytes)
        let error = await #expect(throws: RoutingStoreError.self) { try await folder.restart(configured) }
        #expect(error?.description.contains("\(path) has version 4, but this gateway reads versions up to 3") == true)
        #expect(try [folder.file.path, folder.file.previousPath].map(folder.bytes) == before)
    }

    @Test(arguments: ["0", "-1", "01", "+1", "x", "", "99999999999999999999"])
    func invalidVersionIsTreatedAsDamage(version: String) async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        try await folder.store(configured).save(Self.context("first")).value
        let text = try StateFile.read(folder.file.path).text
        let header = "coaty-gateway state \(version) \(Fingerprint.of(text))\n"
        try folder.put(Array(header.utf8) + text, at: folder.file.path)
        #expect(try await folder.restart(configured) == "normal")
        #expect(folder.log.lines.contains { $0.contains("is incomplete or was altered") })
    }

    @Test func aDirectoryIsLockedOnce() throws {
        let folder = Folder()
        var lock: StateLock? = try StateLock(directory: folder.path)
        let error = #expect(throws: RoutingStoreError.self) { try StateLock(directory: folder.path) }
        #expect(
            error?.description.hasPrefix("state-directory \(folder.path) is used by process \(getpid()): ") == true
        )
        lock = nil
        lock = try StateLock(directory: folder.path)
        #expect(try folder.mode(folder.path + "/.lock") == 0o600)
        withExtendedLifetime(lock) {}
    }

    // MARK: - Gateway processes

    /// Starts a second gateway with the scene's state directory, which must fail, and returns its log.
    private func refusal(_ scene: RoutingScene) throws -> String {
        let second = try GatewayProcess(
            unready: scene.arguments + ["--port", "0"],
            environment: [:]
        )
        #expect(try second.waitForEnd() == 1)
        return second.log
    }

    @Test func aSecondProcessIsRefusedByName() throws {
        let scene = try RoutingScene(state: true)
        #expect(try refusal(scene).contains("is used by process \(scene.gateway.pid)"))
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency"}"#).status == 200)
        // The next gateway starts, however the first one ended.
        try scene.restart(SIGKILL)
        #expect(try scene.state() == "emergency")
        #expect(try refusal(scene).contains("is used by process \(scene.gateway.pid)"))
    }

    @Test func aGatewayDoesNotStartOnNewerState() throws {
        let scene = try RoutingScene(state: true)
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency"}"#).status == 200)
        try scene.gateway.stop()
        let file = scene.folder.appending(path: "state/context-\(RoutingScene.contextId).state")
        let newer = Data("coaty-gateway state 4 x\n{}".utf8)
        try newer.write(to: file)
        let log = try refusal(scene)
        #expect(log.contains("has version 4") && log.contains("start the gateway that wrote it"), "\(log)")
        #expect(try Data(contentsOf: file) == newer)
    }

    /// If the gateway is killed while it writes changes, all acknowledged changes are restored.
    @Test func changesSurviveSIGKILLWhileTheyAreWritten() throws {
        let scene = try RoutingScene(state: true)
        var generator = SeededGenerator(seed: 16)
        var last = 0
        for _ in 0..<6 {
            let (gateway, first) = (scene.gateway, last + 1)
            let writer = Writer { number in
                (try? gateway.request(
                    "PATCH",
                    RoutingScene.path,
                    headers: [("Content-Type", "application/json")],
                    body: #"{"level":\#(number)}"#
                ).status) == 200
            }
            writer.start(at: first)
            let goal = first + Int.random(in: 3...20, using: &generator)
            try waitUntil("changes are made") { writer.acknowledged >= goal }
            try scene.restart(SIGKILL)
            writer.join()
            let level = try #require((try scene.context()["context"] as? [String: Any])?["level"] as? Int)
            #expect((writer.acknowledged...writer.sent).contains(level), "round from \(first)")
            last = writer.sent
        }
    }
}

/// A writer that sends numbered changes one after the other on a separate thread, until one fails.
private final class Writer: @unchecked Sendable {
    // Both properties are accessed only while `condition` is locked.
    private var counts = (sent: 0, acknowledged: 0)
    private var hasEnded = false
    private let condition = NSCondition()
    private let change: @Sendable (Int) -> Bool

    init(_ change: @escaping @Sendable (Int) -> Bool) { self.change = change }

    var sent: Int { condition.withLock { counts.sent } }
    var acknowledged: Int { condition.withLock { counts.acknowledged } }

    func start(at first: Int) {
        Thread.detachNewThread { [self] in
            var number = first
            while true {
                condition.withLock { counts.sent = number }
                guard change(number) else { break }
                condition.withLock { counts.acknowledged = number }
                number += 1
            }
            condition.withLock {
                hasEnded = true
                condition.broadcast()
            }
        }
    }

    func join() {
        condition.lock()
        defer { condition.unlock() }
        while !hasEnded { condition.wait() }
    }
}
