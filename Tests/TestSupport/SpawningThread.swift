import Foundation
import Synchronization

/// The one thread that starts child processes.
///
/// The parent-death signal of a child comes when the *thread* that started it ends, so this one never does.
final class SpawningThread: Sendable {
    private typealias Job = @Sendable () -> Void

    static let shared = SpawningThread()

    private let jobs = Mutex<[Job]>([])
    private let pending = DispatchSemaphore(value: 0)

    private init() {
        Thread.detachNewThread { [self] in
            while true {
                pending.wait()
                jobs.withLock { $0.removeFirst() }()
            }
        }
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - environment: the whole environment; nil passes on this process's.
    ///   - output: the path of a file that takes standard output; nil passes on this process's.
    ///   - errors: the same for standard error.
    func spawn(
        _ path: String,
        _ arguments: [String],
        environment: [String: String]? = nil,
        output: String? = nil,
        errors: String? = nil
    ) throws -> pid_t {
        let outcome = Outcome()
        jobs.withLock { jobs in
            jobs.append {
                var pid: pid_t = 0
                // Threads that libdispatch created, and those that these create, block all signals; SIGTERM must work.
                var signals = sigset_t()
                sigemptyset(&signals)
                var attributes = posix_spawnattr_t()
                posix_spawnattr_init(&attributes)
                posix_spawnattr_setsigmask(&attributes, &signals)
                posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
                var actions = posix_spawn_file_actions_t()
                posix_spawn_file_actions_init(&actions)
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
                outcome.result.withLock { [pid] in $0 = (pid, error) }
                outcome.done.signal()
            }
        }
        pending.signal()
        outcome.done.wait()
        let (pid, error) = outcome.result.withLock { $0 }
        guard error == 0 else { throw TestSupportError("cannot start \(path): errno \(error)") }
        return pid
    }

    private final class Outcome: Sendable {
        let result = Mutex<(pid: pid_t, error: Int32)>((0, 0))
        let done = DispatchSemaphore(value: 0)
    }
}
