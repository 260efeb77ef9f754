public import Foundation
import Glibc

/// A program that runs as a child process. It is killed when the object is released.
public final class ChildProcess: Sendable {
    /// Maximum time that ``waitForEnd()`` waits, in seconds.
    public static let limit: TimeInterval = 60

    private let pid: pid_t
    private let file: String

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - environment: the whole environment; nil passes on this process's.
    ///   - input: the path of a file that is its standard input; nil passes on this process's.
    ///   - errors: the same for standard error.
    ///   - parentDeathSignal: the name of the signal that the program gets when the test process ends.
    /// - Throws: ``TestSupportError`` if the program cannot be started.
    public init(
        _ path: String,
        _ arguments: [String],
        environment: [String: String]? = nil,
        input: String? = nil,
        errors: String? = nil,
        parentDeathSignal: String = "KILL"
    ) throws {
        file = FileManager.default.temporaryDirectory.appending(path: "output-\(UUID().uuidString)").path
        pid = try SpawningThread.spawn(
            "/usr/bin/setpriv",
            ["setpriv", "--pdeathsig", parentDeathSignal, "--", path] + arguments,
            environment: environment,
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

    /// Sends a signal. Has no effect after the program has ended.
    public func signal(_ number: Int32) {
        // Until `deinit` the process is at least a zombie, so the id is not in use again.
        kill(pid, number)
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
