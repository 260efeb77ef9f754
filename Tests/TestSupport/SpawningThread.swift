import Foundation
import Synchronization

/// A thread that never ends and starts child processes. The kernel sends a child's parent-death signal when the
/// *thread* that started it ends.
final class SpawningThread: Sendable {
    private typealias Job = @Sendable () -> Void

    /// Maximum time in seconds that a job may take.
    static let limit: TimeInterval = 60
    private static let shared = SpawningThread()
    /// The thread whose job runs the caller.
    @TaskLocal private static var current: SpawningThread?

    private let jobs = Mutex<[Job]>([])
    private let pending = DispatchSemaphore(value: 0)

    init() {
        Thread.detachNewThread { [self] in
            while true {
                pending.wait()
                jobs.withLock { $0.removeFirst() }()
            }
        }
    }

    /// Runs a job on this thread.
    ///
    /// - Throws: the error of the job; ``TestSupportError`` if the job does not end within ``limit``. The job then
    ///   continues.
    func run<Success: Sendable>(_ job: @escaping @Sendable () throws -> Success) throws -> Success {
        if Self.current === self { return try job() }
        let outcome = Outcome<Success>()
        jobs.withLock { jobs in
            jobs.append {
                let result = Self.$current.withValue(self) { Result(catching: job) }
                outcome.result.withLock { $0 = result }
                outcome.done.signal()
            }
        }
        pending.signal()
        guard outcome.done.wait(timeout: .now() + Self.limit) == .success, let result = outcome.result.withLock(\.self)
        else { throw TestSupportError("a job is not done within \(Self.limit) s") }
        return try result.get()
    }

    /// Starts a program, on the thread whose job runs the caller, or else on the shared thread.
    ///
    /// - Parameters:
    ///   - environment: the whole environment; nil for that of this process.
    ///   - input: the path of the file for standard input; nil for that of this process.
    ///   - output: the path of the file for standard output; nil for that of this process.
    ///   - errors: the path of the file for standard error; nil for that of this process.
    static func spawn(
        _ path: String,
        _ arguments: [String],
        environment: [String: String]? = nil,
        input: String? = nil,
        output: String? = nil,
        errors: String? = nil
    ) throws -> pid_t {
        try (current ?? shared).run {
            var pid: pid_t = 0
            // Threads of libdispatch, and threads that they create, block all signals, but a child must receive
            // SIGTERM.
            var signals = sigset_t()
            sigemptyset(&signals)
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            posix_spawnattr_setsigmask(&attributes, &signals)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            if let input { posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input, O_RDONLY, 0) }
            for (descriptor, file) in [(STDOUT_FILENO, output), (STDERR_FILENO, errors)] {
                guard let file else { continue }
                let flags = O_WRONLY | O_CREAT | O_APPEND
                posix_spawn_file_actions_addopen(&actions, descriptor, file, flags, 0o600)
            }
            var argv = arguments.map { strdup($0) } + [nil]
            var envp = environment.map { $0.map { strdup("\($0)=\($1)") } + [nil] } ?? []
            let error =
                envp.isEmpty
                ? posix_spawn(&pid, path, &actions, &attributes, &argv, environ)
                : posix_spawn(&pid, path, &actions, &attributes, &argv, &envp)
            for text in argv + envp { free(text) }
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
            guard error == 0 else { throw TestSupportError("cannot start \(path): errno \(error)") }
            return pid
        }
    }

    private final class Outcome<Success: Sendable>: Sendable {
        let result = Mutex<Result<Success, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
    }
}
