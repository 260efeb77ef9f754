import Dispatch
import Synchronization

/// Calls a handler after a delay, unless the deadline is cancelled or released earlier.
///
/// This is not a sleeping task: the clock would keep that task's memory until its time, even after cancellation.
package final class Deadline: Sendable {
    private static let queue = DispatchQueue(label: "coaty deadlines")

    private enum Timer {
        case source(any DispatchSourceTimer)
        case task(Task<Void, Never>)
    }

    private let timer: Mutex<Timer>

    /// - Parameter handler: must not block.
    package init(after duration: Duration, handler: @escaping @Sendable () -> Void) {
        let timer = DispatchSource.makeTimerSource(queue: Self.queue)
        timer.schedule(deadline: .now() + duration / .seconds(1))
        timer.setEventHandler(handler: handler)
        timer.resume()
        self.timer = Mutex(.source(timer))
    }

    /// Creates a deadline on a clock. For clocks other than `ContinuousClock`, which only tests use, the deadline is a
    /// sleeping task.
    ///
    /// - Parameter handler: must not block.
    package convenience init(
        after duration: Duration,
        on clock: some Clock<Duration>,
        handler: @escaping @Sendable () -> Void
    ) {
        if clock is ContinuousClock {
            self.init(after: duration, handler: handler)
        } else {
            let end = clock.now.advanced(by: duration)
            self.init(
                Task {
                    guard (try? await clock.sleep(until: end, tolerance: nil)) != nil else { return }
                    handler()
                }
            )
        }
    }

    private init(_ task: Task<Void, Never>) { timer = Mutex(.task(task)) }

    deinit { cancel() }

    /// Cancels the call of the handler, unless it is already running.
    package func cancel() {
        timer.withLock { timer in
            switch timer {
            case .source(let source): source.cancel()
            case .task(let task): task.cancel()
            }
        }
    }
}
