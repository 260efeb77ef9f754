import Foundation
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CoatyGateway

@Suite(.exclusive, .needs(.mosquitto), .timeLimit(.minutes(2)))
struct EmbeddedBrokerTests {
    private func broker(
        port: UInt16 = 0,
        host: String = "127.0.0.1",
        attempts: Int = 32,
        executable: String? = nil,
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) -> EmbeddedBroker {
        let configuration = EmbeddedBroker.Configuration(
            listen: EmbeddedBroker.Address(host: host, port: port),
            maxPortAttempts: attempts,
            executable: executable
        )
        return EmbeddedBroker(configuration: configuration, logger: logger)
    }

    @Test func startedBrokerCarriesMessages() async throws {
        let broker = broker()
        #expect(broker.address == nil)
        try await broker.start()
        let address = try #require(broker.address)
        #expect(address.host == "127.0.0.1" && address.port != 0)
        do {
            let client = try MQTTTestClient(port: address.port)
            try client.subscribe("a/#")
            try client.publish("a/b", "hello")
            #expect(try client.waitFor(count: 1).map(\.text) == ["hello"])
        }
        await broker.stop()
        #expect(broker.address == nil)
    }

    private static let localHosts: [String] = {
        let addresses = try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8)
        return addresses?.isEmpty == false ? ["localhost", "::1", "::"] : ["localhost"]
    }()

    @Test(arguments: localHosts)
    func brokerListensOnOtherLocalAddresses(host: String) async throws {
        let broker = broker(host: host)
        try await broker.start()
        let address = try #require(broker.address)
        #expect(address.host == (host == "::" ? "::1" : host))
        _ = try MQTTTestClient(host: address.host, port: address.port)
        await broker.stop()
    }

    @Test func nextPortIsUsedIfPortIsTaken() async throws {
        let other = try BrokerProcess()
        defer { other.stop() }
        let broker = broker(port: other.port)
        try await broker.start()
        let port = try #require(broker.address).port
        #expect(port > other.port)
        let here = try MQTTTestClient(port: port)
        let there = try MQTTTestClient(port: other.port)
        try there.subscribe("#")
        try here.subscribe("#")
        try here.publish("a", "x")
        try here.waitFor(count: 1)
        #expect(there.messages.isEmpty, "the brokers are independent")
        await broker.stop()
    }

    @Test func startFailsIfTheOnlyAllowedPortIsTaken() async throws {
        let other = try BrokerProcess()
        defer { other.stop() }
        let broker = broker(port: other.port, attempts: 1)
        let error = await #expect(throws: EmbeddedBrokerError.self) { try await broker.start() }
        #expect(error?.description.contains("127.0.0.1:\(other.port) is in use by another program") == true)
    }

    /// All brokers want the same port at the same time; each must get a different one.
    @Test func brokersThatStartTogetherGetDifferentPorts() async throws {
        let wanted = try FreePort.tcp()
        let brokers = (0..<4).map { _ in broker(port: wanted) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for broker in brokers { group.addTask { try await broker.start() } }
            try await group.waitForAll()
        }
        let addresses = brokers.compactMap(\.address)
        let processes = brokers.compactMap(\.processID)
        #expect(Set(addresses).count == 4 && Set(processes).count == 4)
        for (index, address) in addresses.enumerated() {
            let client = try MQTTTestClient(port: address.port)
            try client.publish("which", "\(index)", retain: true)
        }
        for (index, address) in addresses.enumerated() {
            let client = try MQTTTestClient(port: address.port)
            try client.subscribe("which")
            #expect(try client.waitFor(count: 1).map(\.text) == ["\(index)"])
        }
        for broker in brokers { await broker.stop() }
        #expect(processes.allSatisfy { !Self.processExists($0) })
    }

    @Test func killedBrokerIsRestartedOnItsPort() async throws {
        let broker = broker()
        try await broker.start()
        let address = try #require(broker.address)
        var killed = try #require(broker.processID)
        for _ in 0..<2 {
            kill(killed, SIGKILL)
            let next = try await eventually { broker.processID.flatMap { $0 == killed ? nil : $0 } }
            _ = try await eventually { try? MQTTTestClient(port: address.port) }
            #expect(broker.address == address)
            #expect(!Self.processExists(killed), "it is reaped")
            killed = next
        }
        await broker.stop()
        #expect(!Self.processExists(killed))
    }

    @Test func restartsStopAfterTheMaximum() async throws {
        let configuration = EmbeddedBroker.Configuration(
            listen: EmbeddedBroker.Address(host: "127.0.0.1", port: 0),
            maxRestarts: 2
        )
        let broker = EmbeddedBroker(configuration: configuration, logger: Logger(label: "test") { _ in LineJournal() })
        let isGivenUp = Mutex(false)
        let givenUp = AsyncStream.makeStream(of: Void.self)
        broker.whenGivenUp {
            isGivenUp.withLock { $0 = true }
            givenUp.continuation.yield()
        }
        try await broker.start()
        for _ in 0..<3 {
            let isEarly = isGivenUp.withLock { $0 }
            #expect(!isEarly)
            let pid = try await eventually { broker.processID }
            kill(pid, SIGKILL)
            _ = try await eventually { broker.processID == pid ? nil : true }
        }
        for await _ in givenUp.stream { break }
        #expect(broker.address == nil && broker.processID == nil)
        await broker.stop()
    }

    @Test func stopLeavesNoProcessAndNoDirectory() async throws {
        let broker = broker()
        try await broker.start()
        let pid = try #require(broker.processID)
        let command = try String(contentsOfFile: "/proc/\(pid)/cmdline", encoding: .utf8).split(separator: "\0")
        let configuration = try #require(command.last)
        #expect(configuration.hasSuffix("/mosquitto.conf"))
        // The directory is removed as soon as the broker answers, so that it can't be left behind.
        let directory = String(configuration.dropLast("/mosquitto.conf".count))
        #expect(!FileManager.default.fileExists(atPath: directory))
        await broker.stop()
        #expect(!Self.processExists(pid))
        #expect(broker.processID == nil)
        await broker.stop()
    }

    @Test func stopAfterBrokerCrashLeavesNoProcess() async throws {
        let broker = broker()
        try await broker.start()
        let pid = try #require(broker.processID)
        kill(pid, SIGKILL)
        await broker.stop()
        #expect(broker.processID == nil)
        #expect(!Self.processExists(pid))
    }

    @Test func stoppedBrokerStartsAgain() async throws {
        let broker = broker()
        for _ in 0..<2 {
            try await broker.start()
            _ = try MQTTTestClient(port: try #require(broker.address).port)
            await broker.stop()
        }
    }

    @Test func brokerRunsUnprivilegedInItsOwnProcessGroup() async throws {
        let broker = broker()
        try await broker.start()
        let pid = try #require(broker.processID)
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let fields = status.split(separator: "\n").map { $0.split(whereSeparator: \.isWhitespace) }
        #expect(fields.contains(["Name:", "mosquitto"]))
        #expect(fields.first { $0.first == "Uid:" }?.contains("0") == false, "not root, whoever runs the tests")
        #expect(getpgid(pid) == pid, "it has a separate process group, so it gets no signals of the terminal")
        await broker.stop()
    }

    @Test func childInheritsNoDescriptorsEnvironmentOrSignals() async throws {
        let inheritable = open("/dev/null", O_RDONLY)
        defer { close(inheritable) }
        try #require(inheritable > 2 && fcntl(inheritable, F_GETFD) == 0)
        setenv("COATY_GATEWAY_TEST_SECRET", "1", 1)
        let script = try Script(
            """
            for n in 3 4 5 6 7 8 9 \(inheritable); do [ -e /proc/$$/fd/$n ] && echo inherited $n; done
            env
            exec grep -E 'Sig(Blk|Ign)' /proc/self/status
            """
        )
        let journal = LineJournal()
        let broker = broker(executable: script.path, logger: Logger(label: "test") { _ in journal })
        await #expect(throws: EmbeddedBrokerError.self) { try await broker.start() }
        let lines = journal.lines.map { $0.dropFirst("mosquitto: ".count).filter { $0 != "\t" } }
        #expect(!lines.contains { $0.contains("inherited") }, "\(lines)")
        #expect(lines.contains("SigBlk:0000000000000000"), "\(lines)")
        // Signals 32 and 33 belong to glibc.
        #expect(lines.contains("SigIgn:0000000180000000") || lines.contains("SigIgn:0000000000000000"), "\(lines)")
        #expect(!lines.contains { $0.contains("SECRET") })
    }

    /// The parent-death signal comes when the thread ends that spawned the child; a killed gateway ends all threads.
    @Test func brokerDiesWithTheThreadThatSpawnedIt() async throws {
        let launcher = try BrokerLauncher(configuration: EmbeddedBroker.Configuration())
        let address = EmbeddedBroker.Address(host: "127.0.0.1", port: try FreePort.tcp())
        let pid = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try Self.spawnAnsweringBroker(launcher, address) })
            }
        }
        do {
            let status = try await eventually {
                var status: Int32 = 0
                return waitpid(pid, &status, WNOHANG) == pid ? status : nil
            }
            #expect(status & 0x7F == SIGKILL)
        } catch {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            throw error
        }
    }

    private static func spawnAnsweringBroker(
        _ launcher: BrokerLauncher,
        _ address: EmbeddedBroker.Address
    ) throws -> pid_t {
        let probe = BrokerProbe(address: address)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let directory = try launcher.makeDirectory()
        defer { directory.remove() }
        let child = try launcher.spawn(on: address, in: directory, awaitedText: probe.clientID, logger: logger)
        let deadline = ContinuousClock.now + .seconds(10)
        while !probe.isAnswered(), ContinuousClock.now < deadline, child.exitStatus == nil {
            child.watch(for: .milliseconds(10), orUntil: nil)
        }
        child.watch(for: .milliseconds(10), orUntil: nil)
        #expect(child.exitStatus == nil && child.hasLoggedAwaitedText)
        return child.pid
    }

    @Test func missingMosquittoIsNamed() async throws {
        let broker = broker(executable: "/nowhere/mosquitto")
        let error = await #expect(throws: EmbeddedBrokerError.self) { try await broker.start() }
        #expect(error?.description.contains("cannot execute /nowhere/mosquitto") == true)
        #expect(broker.address == nil)
    }

    @Test func errorContainsOutputOfExitedBroker() async throws {
        let script = try Script("echo 'Error: no such luck' >&2; exit 3")
        let broker = broker(executable: script.path)
        let error = await #expect(throws: EmbeddedBrokerError.self) { try await broker.start() }
        let description = try #require(error).description
        #expect(description.contains("ended, exit code 3") && description.contains("Error: no such luck"))
    }

    @Test func stopKillsABrokerThatNeverAnswers() async throws {
        let script = try Script("trap '' TERM; echo $$; exec sleep 600")
        let journal = LineJournal()
        let broker = broker(executable: script.path, logger: Logger(label: "test") { _ in journal })
        let start = Task { try await broker.start() }
        let pid = try await eventually {
            journal.lines.lazy.compactMap { Int32($0.dropFirst("mosquitto: ".count)) }.first
        }
        #expect(Self.processExists(pid))
        await broker.stop()
        await #expect(throws: CancellationError.self) { try await start.value }
        #expect(!Self.processExists(pid), "killed, as it ignores SIGTERM")
    }

    @Test func cancelledStartLeavesNothing() async throws {
        let script = try Script("echo $$; exec sleep 600")
        let journal = LineJournal()
        let broker = broker(executable: script.path, logger: Logger(label: "test") { _ in journal })
        let start = Task { try await broker.start() }
        let pid = try await eventually {
            journal.lines.lazy.compactMap { Int32($0.dropFirst("mosquitto: ".count)) }.first
        }
        start.cancel()
        await #expect(throws: CancellationError.self) { try await start.value }
        #expect(!Self.processExists(pid))
    }

    @Test func foreignAddressIsRefused() async throws {
        // No host has an address in TEST-NET-1 (RFC 5737).
        let broker = broker(host: "192.0.2.1")
        let error = await #expect(throws: EmbeddedBrokerError.self) { try await broker.start() }
        #expect(error?.description.contains("cannot listen on 192.0.2.1") == true)
    }

    @Test func openBrokerCausesWarningAndIsReachedOverLoopback() async throws {
        let journal = LineJournal()
        let broker = broker(host: "0.0.0.0", logger: Logger(label: "test") { _ in journal })
        try await broker.start()
        #expect(try #require(broker.address).host == "127.0.0.1")
        #expect(journal.lines.contains { $0.contains("accepts every client") })
        await broker.stop()
    }

    /// A long line is truncated, and neither a long line nor many lines block the broker.
    @Test func brokerLogLinesAreForwardedAndTruncated() async throws {
        let script = try Script("head -c 300000 /dev/zero | tr '\\0' x; echo; echo Warning: end; exit 1")
        let journal = LineJournal()
        let broker = broker(executable: script.path, logger: Logger(label: "test") { _ in journal })
        await #expect(throws: EmbeddedBrokerError.self) { try await broker.start() }
        let long = journal.lines.filter { $0.contains("xxx") }
        #expect(long.map(\.count) == ["mosquitto: ".count + BrokerChild.maxLineLength])
        #expect(journal.lines.contains("mosquitto: Warning: end"))
    }

    private static func processExists(_ pid: Int32) -> Bool {
        FileManager.default.fileExists(atPath: "/proc/\(pid)")
    }
}

/// Polls until `value` returns a value.
private func eventually<T>(within limit: Duration = .seconds(20), _ value: () throws -> T?) async throws -> T {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline {
        if let value = try value() { return value }
        try await Task.sleep(for: .milliseconds(10))
    }
    throw Overdue()
}

private struct Overdue: Error {}

/// A shell script in a temporary file that any user may run. Replaces mosquitto.
private final class Script: Sendable {
    let path: String

    init(_ body: String) throws {
        path = NSTemporaryDirectory() + "coaty-test-\(UUID().uuidString).sh"
        try "#!/bin/sh\n\(body)\n".write(toFile: path, atomically: false, encoding: .utf8)
        guard chmod(path, 0o755) == 0 else { throw POSIXError(.EACCES) }
        // A process that another test starts at this moment may hold the file open for writing until its exec, and a
        // file that is open for writing cannot be executed (ETXTBSY). A read lease is granted only when no process has
        // the file open for writing.
        let setLease: Int32 = 1024
        let reading = open(path, O_RDONLY)
        defer { close(reading) }
        let deadline = ContinuousClock.now + .seconds(5)
        while fcntl(reading, setLease, F_RDLCK) != 0 {
            guard errno == EAGAIN, ContinuousClock.now < deadline else { throw POSIXError(.ETXTBSY) }
            usleep(1000)
        }
    }

    deinit {
        unlink(path)
    }
}

/// A log handler that keeps the logged lines.
final class LineJournal: LogHandler {
    private let state = Mutex<[String]>([])

    var lines: [String] { state.withLock { $0 } }

    func log(event: LogEvent) {
        state.withLock { $0.append("\(event.message)") }
    }

    subscript(metadataKey _: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }

    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
}
