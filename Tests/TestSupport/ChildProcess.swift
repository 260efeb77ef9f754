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
    ///   - environment: the whole environment; nil for that of this process.
    ///   - input: the path of the file for standard input; nil for that of this process.
    ///   - errors: the path of the file for standard error; nil for that of this process.
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
            TestProgram.setpriv.path(),
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
        // The process stays at least a zombie until `deinit`, so its id is not reused.
        kill(pid, number)
    }

    /// The program's standard output so far.
    public var output: String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }

    /// Waits until the program has ended by itself, and returns its exit code, or minus the signal that ended it.
    ///
    /// - Throws: ``TestSupportError`` if it does not end within ``limit``.
    public func waitForEnd() throws -> Int32 {
        var information = siginfo_t()
        try waitUntil("the program ends", within: Self.limit) {
            // WNOWAIT leaves the zombie to `deinit`.
            waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 && information.si_signo == SIGCHLD
        }
        let status = information._sifields._sigchld.si_status
        return information.si_code == CLD_EXITED ? status : -status
    }
}
