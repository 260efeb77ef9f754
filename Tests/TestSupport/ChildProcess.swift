import Foundation
import Glibc

/// A program, from its start until the object goes. It gets no signal but SIGKILL.
public final class ChildProcess: Sendable {
    private let pid: pid_t
    private let file: String

    /// Starts a program.
    ///
    /// - Throws: ``TestSupportError`` where that cannot be.
    public init(_ path: String, _ arguments: [String]) throws {
        file = FileManager.default.temporaryDirectory.appending(path: "output-\(UUID().uuidString)").path
        pid = try SpawningThread.spawn(
            "/usr/bin/setpriv",
            ["setpriv", "--pdeathsig", "KILL", "--", path] + arguments,
            output: file
        )
    }

    deinit {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        try? FileManager.default.removeItem(atPath: file)
    }

    /// What it wrote to standard output.
    public var output: String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }
}
