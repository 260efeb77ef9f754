import Coordination
import Dispatch
import Logging
import Synchronization

/// The time that all components together have to stop, so that the process ends before a supervisor kills it.
final class StopClock: Sendable {
    /// Maximum time of a stop. Supervisors commonly wait for ten seconds.
    static let limit = Duration.milliseconds(9500)

    private struct State {
        var deadline: ContinuousClock.Instant?
        /// Names of the components whose `stop()` has not returned, in the order of the calls.
        var stopping: [String] = []
    }

    private let limit: Duration
    private let state = Mutex(State())

    init(limit: Duration = StopClock.limit) { self.limit = limit }

    /// Names of the components that are stopping or were left behind.
    var stopping: [String] { state.withLock { $0.stopping } }

    /// Starts the clock, if it does not run, and returns the part of the time that a component gets.
    func time(atMost maximum: Duration) -> Duration {
        state.withLock { state in
            let deadline = state.deadline ?? .now + limit
            state.deadline = deadline
            return max(.zero, min(maximum, deadline - .now))
        }
    }

    fileprivate func begins(_ name: String) { state.withLock { $0.stopping.append(name) } }

    fileprivate func ends(_ name: String) {
        state.withLock { state in
            if let index = state.stopping.firstIndex(of: name) { state.stopping.remove(at: index) }
        }
    }
}

/// Stops a component within its share of a stop's time. A component that takes longer is left behind: the others still stop in order, and
/// the end of the process ends it.
struct BoundedStop: Component {
    let name: String
    let component: any Component
    /// Maximum time for the component to stop.
    let limit: Duration
    let clock: StopClock
    let logger: Logger

    func start() async throws { try await component.start() }

    func stop() async {
        clock.begins(name)
        let hasEnded = await completes(within: clock.time(atMost: limit)) { [self] in
            await component.stop()
            clock.ends(name)
        }
        if !hasEnded { logger.error("does not stop in time, and is left behind", metadata: ["component": "\(name)"]) }
    }

    func pause() async { await component.pause() }
    func resume() async { await component.resume() }
}

/// Runs an operation, and returns at its end or after `limit`, when it still runs.
///
/// - Returns: whether the operation has ended.
func completes(within limit: Duration, _ operation: @escaping @Sendable () async -> Void) async -> Bool {
    await withCheckedContinuation { continuation in
        let end = SharedEnd(continuation)
        Task {
            await operation()
            end.resume(true)
        }
        let nanoseconds = Int(clamping: Int64(limit / .nanoseconds(1)))
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { end.resume(false) }
    }
}

/// Runs an operation that blocks its thread, on a thread that no task needs.
func onBlockingThread(_ operation: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        // A serial queue gets a thread of its own when it needs one.
        DispatchQueue(label: "stop").async {
            operation()
            continuation.resume()
        }
    }
}

/// A continuation that is resumed once, by the first call.
private final class SharedEnd: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }

    func resume(_ value: Bool) { continuation.withLock { $0.take() }?.resume(returning: value) }
}
