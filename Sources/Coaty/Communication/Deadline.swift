import Dispatch
import Synchronization

/// Calls a handler after a delay, unless the deadline is cancelled or released earlier.
///
/// This is not a sleeping task: the clock would keep that task's memory until its time, even after cancellation. Nor is
/// it a separate timer of Dispatch, which takes system calls and wakes a thread, although most deadlines are cancelled:
/// an eighth of the processor time of a discover.
package final class Deadline: Sendable {
    private enum Timer {
        case key(DeadlineHeap.Key)
        case task(Task<Void, Never>)
    }

    private let timer: Timer

    /// Creates a deadline.
    ///
    /// - Parameter handler: must not block.
    package init(after duration: Duration, handler: @escaping @Sendable () -> Void) {
        timer = .key(DeadlineTimer.shared.add(handler, at: .now + duration))
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

    private init(_ task: Task<Void, Never>) { timer = .task(task) }

    deinit { cancel() }

    /// Cancels the call of the handler, unless it is already running.
    package func cancel() {
        switch timer {
        case .key(let key): DeadlineTimer.shared.remove(key)
        case .task(let task): task.cancel()
        }
    }
}

/// Calls the handlers of all deadlines, one at a time, with a single timer of Dispatch.
private final class DeadlineTimer: Sendable {
    static let shared = DeadlineTimer()

    private struct State {
        let source: any DispatchSourceTimer
        var heap = DeadlineHeap()
        /// The time for which the timer is set; nil if it is not.
        var alarm: ContinuousClock.Instant?
    }

    private let state: Mutex<State>

    private init() {
        let source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "coaty deadlines"))
        source.setEventHandler { DeadlineTimer.shared.callDue() }
        source.activate()
        state = Mutex(State(source: source))
    }

    func add(_ handler: @escaping DeadlineHeap.Handler, at time: ContinuousClock.Instant) -> DeadlineHeap.Key {
        state.withLock { state in
            let key = state.heap.insert(handler, at: time)
            if state.alarm.map({ time < $0 }) ?? true { set(time, &state) }
            return key
        }
    }

    func remove(_ key: DeadlineHeap.Key) {
        // The handler is released outside the lock: its references may cancel other deadlines.
        let handler = state.withLock { $0.heap.remove(key) }
        withExtendedLifetime(handler) {}
    }

    private func callDue() {
        while let handler = takeDue() { handler() }
    }

    private func takeDue() -> DeadlineHeap.Handler? {
        state.withLock { state in
            if let due = state.heap.popDue(at: .now) { return due }
            state.alarm = nil
            if let next = state.heap.first { set(next, &state) }
            return nil
        }
    }

    private func set(_ time: ContinuousClock.Instant, _ state: inout State) {
        state.alarm = time
        state.source.schedule(deadline: .now() + max(.zero, time - .now) / .seconds(1))
    }
}
