import Foundation
import Glibc

/// Ends the process if it does not stop in time, whatever the cause: the watchdog needs neither a task nor a shared
/// thread.
enum StopWatchdog {
    /// The part of the stop timeout for the report and the exit. It is less than the time that the gateway leaves for
    /// the watchdog.
    private static let reserve = Duration.milliseconds(400)

    /// Starts the watchdog.
    ///
    /// - Parameters:
    ///   - timeout: the time within which the process must have ended.
    ///   - report: called shortly before the exit, and must not block for long; then the process exits with status 1.
    static func start(timeout: Duration, _ report: @escaping @Sendable () -> Void) {
        let thread = Thread {
            Thread.sleep(forTimeInterval: (timeout - reserve) / .seconds(1))
            report()
            _exit(1)
        }
        thread.name = "watchdog"
        thread.start()
    }
}
