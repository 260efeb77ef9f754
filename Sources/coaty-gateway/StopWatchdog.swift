import Foundation
import Glibc

/// Ends the process if it does not stop in time, whatever holds it up: it needs neither a task nor a shared thread.
enum StopWatchdog {
    /// More than the gateway takes for a stop, less than the ten seconds for which supervisors commonly wait.
    static let limit: TimeInterval = 9.8

    /// Starts the watchdog.
    ///
    /// - Parameter report: called if the process is still there after ``limit``; then the process exits with status 1.
    static func start(_ report: @escaping @Sendable () -> Void) {
        let thread = Thread {
            Thread.sleep(forTimeInterval: limit)
            // Nobody may read the log.
            signal(SIGALRM, SIG_DFL)
            alarm(1)
            report()
            _exit(1)
        }
        thread.name = "watchdog"
        thread.start()
    }
}
