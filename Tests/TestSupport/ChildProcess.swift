public import Foundation
import Glibc

/// A program, from its start until the object goes. It gets no signal but SIGKILL.
public final class ChildProcess: Sendable {
    /// Until a program that ends by itself must have ended.
    public static let limit: TimeInterval = 60

    private let pid: pid_t
    private let file: String

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - input: the path of a file that is its standard input; nil passes on this process's.
    ///   - errors: the same for standard error.
    /// - Throws: ``TestSupportError`` where that cannot be.
    public init(_ path: String, _ arguments: [String], input: String? = nil, errors: String? = nil) throws {
        file = FileManager.default.temporaryDirectory.appending(path: "output-\(UUID().uuidString)").path
        pid = try SpawningThread.spawn(
            "/usr/bin/setpriv",
            ["setpriv", "--pdeathsig", "KILL", "--", path] + arguments,
            input: input,
            output: file,
            errors: errors
        )
    }

    deinit {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        try? FileManager.default.removeItem(atPath: file)
    }

    /// What it wrote to standard output.
    public var output: String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }

    /// Waits until it has ended by itself, and returns its exit code, or minus the signal that ended it.
    ///
    /// - Throws: ``TestSupportError`` where it does not end within ``limit``.
    public func waitForEnd() throws -> Int32 {
        var information = siginfo_t()
        try waitUntil("the program ends", within: Self.limit) {
            // It stays a zombie, for `deinit`.
            waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 && information.si_signo == SIGCHLD
        }
        let status = information._sifields._sigchld.si_status
        return information.si_code == CLD_EXITED ? status : -status
    }
}
