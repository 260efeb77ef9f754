import Dispatch
import Synchronization

/// Calls a handler when a time is over, unless it is cancelled or released before.
///
/// No sleeping task: of that the clock keeps the memory until its time has come, also where it was cancelled.
package final class Deadline: Sendable {
    private static let queue = DispatchQueue(label: "coaty deadlines")

    private let timer: Mutex<any DispatchSourceTimer>

    /// - Parameter handler: must not block.
    package init(after duration: Duration, handler: @escaping @Sendable () -> Void) {
        let timer = DispatchSource.makeTimerSource(queue: Self.queue)
        timer.schedule(deadline: .now() + duration / .seconds(1))
        timer.setEventHandler(handler: handler)
        timer.resume()
        self.timer = Mutex(timer)
    }

    deinit { cancel() }

    /// Does without the handler, unless it runs already.
    package func cancel() { timer.withLock { $0.cancel() } }
}
