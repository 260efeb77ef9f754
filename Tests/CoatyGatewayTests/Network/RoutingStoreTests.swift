import Coaty
import Foundation
import Logging
import Testing
import TestSupport

@testable import Base
@testable import CoatyGateway
@testable import Network

@Suite(.exclusive) struct RoutingStoreTests {
    static let id = "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"

    static func context(_ state: String, rules: [String] = []) throws -> HostedContext {
        let object =
            #"{"coreType":"IoContext","objectType":"coaty.test.TemperatureIoContext","objectId":"\#(id)","#
            + #""name":"TemperatureMeasurement","operatingState":"\#(state)"}"#
        let list = rules.map { #"{"name":"\#($0)","condition":["source.a",["Exists"]]}"# }.joined(separator: ",")
        return try HostedContext(
            context: JSONDocument(Array(object.utf8)).root,
            rules: IoAssociationRule.rules(JSONDocument(Array("[\(list)]".utf8)).root)
        )
    }

    fileprivate static func configuration(_ contexts: HostedContext...) -> RoutingConfiguration {
        var configuration = RoutingConfiguration()
        configuration.contexts = contexts
        return configuration
    }

    /// A state directory, and a log of its stores.
    final class Folder: Sendable {
        let path = FileManager.default.temporaryDirectory.appending(path: "state-\(UUID().uuidString)").path
        let log = LineJournal()

        deinit { try? FileManager.default.removeItem(atPath: path) }

        var file: StateFile { StateFile(path: "\(path)/context-\(RoutingStoreTests.id).state") }

        func store(_ configured: HostedContext) throws -> RoutingStore {
            try RoutingStore(
                directory: path,
                configuration: RoutingStoreTests.configuration(configured),
                writer: GatewayVersion.text,
                logger: Logger(label: "test") { _ in log }
            )
        }

        /// Returns the operating state and the names of the rules after a restart.
        func restart(_ configured: HostedContext) async throws -> String {
            let contexts = try await store(configured).load()
            let context = try #require(contexts.first)
            #expect(contexts.count == 1)
            let state = context.context.root["operatingState"]?.string ?? ""
            return ([state] + context.rules.map(\.name)).joined(separator: " ")
        }

        func mode(_ path: String) throws -> Int {
            try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
        }

        func bytes(_ path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

        func put(_ bytes: some Sequence<UInt8>, at path: String) throws {
            try Data(bytes).write(to: URL(filePath: path))
        }
    }

    @Test func changesAreRestored() async throws {
        let folder = Folder()
        let configured = try Self.context("normal", rules: ["a"])
        #expect(try await folder.restart(configured) == "normal a")
        try await folder.store(configured).save(Self.context("emergency", rules: ["b", "c"])).value
        #expect(try await folder.restart(configured) == "emergency b c")
        #expect(folder.log.lines.isEmpty)
        #expect(try folder.mode(folder.path) == 0o700)
        #expect(try folder.mode(folder.file.path) == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
    }

    @Test func theVersionInAClusterIsRestored() async throws {
        let folder = Folder()
        let configured = try Self.context("normal", rules: ["a"])
        var current = configured
        current.version = RoutingVersion(term: 3, counter: 7)
        try await folder.store(configured).save(current).value
        // Also with a changed configuration: the latest change is the latest version.
        for configured in [configured, try Self.context("normal", rules: ["b"])] {
            #expect(try await folder.store(configured).load().map(\.version) == [current.version])
        }
    }

    @Test func changedConfigurationPartsReplaceStoredState() async throws {
        let folder = Folder()
        let configured = try Self.context("normal", rules: ["a"])
        try await folder.store(configured).save(Self.context("emergency", rules: ["b"])).value
        let otherRules = try Self.context("normal", rules: ["d"])
        #expect(try await folder.restart(otherRules) == "emergency d")
        #expect(folder.log.lines.contains { $0.contains("the configuration of rules has changed") })
        // The stored state has been dropped permanently.
        #expect(try await folder.restart(configured) == "emergency a")
        #expect(try await folder.restart(Self.context("other", rules: ["d"])) == "other d")
        #expect(folder.log.lines.contains { $0.contains("the configuration of a context has changed") })
        #expect(try await folder.restart(configured) == "normal a")
    }

    @Test func unchangedPartsAreNotStored() async throws {
        let folder = Folder()
        let configured = try Self.context("normal", rules: ["a"])
        let store = try folder.store(configured)
        try await store.save(Self.context("emergency", rules: ["a"])).value
        #expect(try await folder.restart(Self.context("normal", rules: ["b"])) == "emergency b")
        try await store.save(configured).value
        #expect(try await folder.restart(Self.context("other", rules: ["b"])) == "other b")
        #expect(folder.log.lines.isEmpty)
    }

    @Test func aFileTornAnywhereIsNotUsed() async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        try await store.save(Self.context("first")).value
        try await store.save(Self.context("second")).value
        let whole = try folder.bytes(folder.file.path)
        for length in 0..<whole.count {
            try folder.put(whole.prefix(length), at: folder.file.path)
            #expect(try await folder.restart(configured) == "first", "\(length) bytes")
        }
        #expect(folder.log.lines.filter { $0.contains("is incomplete or was altered") }.count == whole.count)
        try folder.put(whole, at: folder.file.path)
        #expect(try await folder.restart(configured) == "second")
    }

    @Test func aFileAlteredAnywhereIsNotUsed() async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        try await store.save(Self.context("first")).value
        try await store.save(Self.context("second")).value
        let whole = try folder.bytes(folder.file.path)
        for index in whole.indices {
            var altered = whole
            altered[index] ^= 1 << (index % 8)
            try folder.put(altered, at: folder.file.path)
            #expect(try await folder.restart(configured) == "first", "byte \(index)")
        }
        try folder.put(whole + [UInt8(ascii: " ")], at: folder.file.path)
        #expect(try await folder.restart(configured) == "first")
    }

    @Test func tornFileDoesNotReplaceTheLastGoodOne() async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        try await store.save(Self.context("first")).value
        try await store.save(Self.context("second")).value
        try folder.put("torn".utf8, at: folder.file.path)
        let next = try folder.store(configured)
        _ = try await next.load()
        try await next.save(Self.context("third")).value
        #expect(try await folder.restart(configured) == "third")
        try folder.put("torn".utf8, at: folder.file.path)
        #expect(try await folder.restart(configured) == "first")
        // From here on, the current file is intact again.
        let last = try folder.store(configured)
        _ = try await last.load()
        try await last.save(Self.context("fourth")).value
        try await last.save(Self.context("fifth")).value
        try folder.put("torn".utf8, at: folder.file.path)
        #expect(try await folder.restart(configured) == "fourth")
    }

    @Test func configurationIsUsedWithoutIntactFile() async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        try await store.save(Self.context("first")).value
        try await store.save(Self.context("second")).value
        try folder.put([], at: folder.file.path)
        try folder.put("torn\n".utf8, at: folder.file.previousPath)
        #expect(try await folder.restart(configured) == "normal")
        #expect(folder.log.lines.contains { $0.contains("no stored state can be used") })
    }

    @Test func killDuringWriteKeepsThePreviousState() async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        try await store.save(Self.context("first")).value
        let file = folder.file
        // The new file is partly written, and no file has been renamed.
        try folder.put("coaty-gateway".utf8, at: file.temporaryPath)
        #expect(try await folder.restart(configured) == "first")
        #expect(folder.log.lines.isEmpty)
        // The current file has been renamed to the previous one; the new file has not been renamed yet.
        try FileManager.default.moveItem(atPath: file.path, toPath: file.previousPath)
        #expect(try await folder.restart(configured) == "first")
        #expect(folder.log.lines.contains { $0.contains("the previous version of the stored state is used") })
        try await folder.store(configured).save(Self.context("second")).value
        #expect(try await folder.restart(configured) == "second")
        try folder.put([], at: file.path)
        #expect(try await folder.restart(configured) == "first")
    }

    /// The file is intact, but this gateway would not have written its contents.
    @Test(arguments: [
        "{}", "[]", "null", "torn",
        #"{"objectId":"11111111-1111-4111-8111-111111111111"}"#,
        #"{"objectId":"\#(id)","context":{}}"#,
        #"{"objectId":"\#(id)","rules":{"configured":"x"}}"#,
        #"{"objectId":"\#(id)","rules":{"configured":"FINGERPRINT","value":[{}]}}"#,
    ])
    func invalidContentIsNotUsed(text: String) async throws {
        let folder = Folder()
        let configured = try Self.context("normal", rules: [])
        _ = try folder.store(configured)
        let fingerprint = Fingerprint.of("[]".utf8)
        let text = text.replacing("FINGERPRINT", with: fingerprint)
        try folder.file.write(Array(text.utf8), writer: GatewayVersion.text, keepingCurrent: true)
        #expect(try await folder.restart(configured) == "normal")
        #expect(folder.log.lines.contains { $0.contains("so the configuration applies") })
    }

    /// One part is valid, and the other cannot be used by a gateway of this version.
    @Test(arguments: [true, false]) func unusablePartDoesNotAffectTheOther(isContextFlawed: Bool) async throws {
        let folder = Folder()
        let configured = try Self.context("normal", rules: ["a"])
        try await folder.store(configured).save(Self.context("emergency", rules: ["b"])).value
        let text = String(decoding: try StateFile.read(folder.file.path).text, as: UTF8.self)
        let flawed =
            isContextFlawed
            ? text.replacing(#""name":"TemperatureMeasurement""#, with: #""name":"Other""#)
            : text.replacing(#""Exists""#, with: #""Exist""#)
        #expect(flawed != text)
        try folder.file.write(Array(flawed.utf8), writer: GatewayVersion.text, keepingCurrent: true)
        #expect(try await folder.restart(configured) == (isContextFlawed ? "normal b" : "emergency a"))
        let part = isContextFlawed ? "a context" : "rules"
        #expect(folder.log.lines.count { $0.contains("the stored state of \(part) can't be used") } == 1)
        #expect(folder.log.lines.count == 1)
    }

    @Test func latestOfConcurrentChangesIsStored() async throws {
        let folder = Folder()
        let configured = try Self.context("normal")
        let store = try folder.store(configured)
        for round in 0..<20 {
            let saves = try (0..<10).map { try store.save(Self.context("\(round) \($0)")) }
            for save in saves { try await save.value }
            #expect(try await folder.restart(configured) == "\(round) 9")
        }
    }

    @Test func failedSaveIsAnError() async throws {
        let folder = Folder()
        let store = try folder.store(Self.context("normal"))
        try FileManager.default.removeItem(atPath: folder.path)
        await #expect(throws: SystemCallError.self) { try await store.save(Self.context("emergency")).value }
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: false)
        try await store.save(Self.context("emergency")).value
        #expect(try await folder.restart(Self.context("normal")) == "emergency")
    }

    @Test func aDirectoryThatCannotBeWrittenIsRefused() throws {
        let folder = Folder()
        try folder.put([], at: folder.path)
        for path in [folder.path, folder.path + "/below", "/proc/coaty", "/proc"] {
            let error = #expect(throws: RoutingStoreError.self) {
                try RoutingStore(
                    directory: path,
                    configuration: .init(),
                    writer: GatewayVersion.text,
                    logger: Logger(label: "test")
                )
            }
            #expect(error?.description.hasPrefix("state-directory \(path) cannot be ") == true)
        }
    }

    @Test func fingerprintsAreFNV1a() {
        #expect(Fingerprint.of("".utf8) == "cbf29ce484222325")
        #expect(Fingerprint.of("a".utf8) == "af63dc4c8601ec8c")
        #expect(Fingerprint.of("foobar".utf8) == "85944171f73967e8")
    }
}
