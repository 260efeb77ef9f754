import Foundation
import Glibc
import TestSupport

/// A program of an example that runs as a child process. It is terminated when the object is released.
final class ExampleProcess {
    private let process: ChildProcess

    /// The folder of the example agents, which is the folder of the gateway's binary.
    static var programs: URL { URL(fileURLWithPath: GatewayProcess.binary).deletingLastPathComponent() }

    /// Returns the folder with the sources of an example.
    static func folder(_ name: String) -> URL {
        URL(fileURLWithPath: #filePath + "/../../../Examples/\(name)").standardizedFileURL
    }

    /// Starts an agent.
    convenience init(_ name: String, _ arguments: [String] = [], broker: BrokerProcess) throws {
        try self.init(
            Self.programs.appending(path: name),
            arguments,
            environment: ["COATY_BROKER": "mqtt://127.0.0.1:\(broker.port)"],
            parentDeathSignal: "KILL"
        )
    }

    /// Starts a program.
    ///
    /// - Parameter parentDeathSignal: the name of the signal that the program gets when the test process ends. A script
    ///   that has child processes needs TERM to end them.
    init(
        _ program: URL,
        _ arguments: [String],
        environment: [String: String] = [:],
        parentDeathSignal: String = "TERM"
    ) throws {
        process = try ChildProcess(
            program.path,
            arguments,
            environment: ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("COATY_") }
                .merging(environment) { $1 },
            parentDeathSignal: parentDeathSignal
        )
    }

    /// The lines that the program has written to standard output.
    var lines: [Substring] { process.output.split(separator: "\n") }

    /// Waits until the program ends by itself, and returns its lines.
    func waitForEnd() throws -> [Substring] {
        _ = try process.waitForEnd()
        return lines
    }

    /// Terminates the program, and returns its exit code, or minus the signal that ended it.
    func stop() throws -> Int32 {
        process.signal(SIGTERM)
        return try process.waitForEnd()
    }

    deinit {
        process.signal(SIGTERM)
        // A script ends its child processes in the meantime; then the program is killed.
        _ = try? process.waitForEnd()
    }
}
