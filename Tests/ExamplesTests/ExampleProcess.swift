import Foundation
import Glibc
import TestSupport

/// An example's agent as a process of its own, which is gone with the object, and at the latest after ``limit``.
final class ExampleProcess {
    /// Seconds that an agent lives at most, however the test ends.
    static let limit = 120

    private let process = Process()
    private let file = FileManager.default.temporaryDirectory.appending(path: "example-\(UUID().uuidString)")

    /// The folder of the agents, which is that of the gateway's binary.
    static var programs: URL { URL(fileURLWithPath: GatewayProcess.binary).deletingLastPathComponent() }

    /// The folder with the sources of an example.
    static func folder(_ name: String) -> URL {
        URL(fileURLWithPath: #filePath + "/../../../Examples/\(name)").standardizedFileURL
    }

    /// Starts an agent.
    convenience init(_ name: String, _ arguments: [String] = [], broker: BrokerProcess) throws {
        try self.init(
            Self.programs.appending(path: name),
            arguments,
            environment: ["COATY_BROKER": "mqtt://127.0.0.1:\(broker.port)"]
        )
    }

    /// Starts a program.
    init(_ program: URL, _ arguments: [String], environment: [String: String] = [:]) throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
        process.arguments = ["\(Self.limit)", program.path] + arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("COATY_") }
            .merging(environment) { $1 }
        try Data().write(to: file)
        process.standardOutput = try FileHandle(forWritingTo: file)
        // Threads that libdispatch created block all signals, and a child inherits that; SIGTERM must work.
        var none = sigset_t()
        var before = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try process.run()
    }

    /// The lines that the agent has written.
    var lines: [Substring] { ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n") }

    /// Waits until the agent has ended by itself.
    func waitForEnd() throws -> [Substring] {
        try waitUntil("the agent ends") { !process.isRunning }
        return lines
    }

    /// Ends the agent in good order, and returns its exit status.
    func stop() throws -> Int32 {
        process.terminate()
        try waitUntil("the agent ends") { !process.isRunning }
        return process.terminationStatus
    }

    deinit {
        if process.isRunning { process.terminate() }
        try? FileManager.default.removeItem(at: file)
    }
}
