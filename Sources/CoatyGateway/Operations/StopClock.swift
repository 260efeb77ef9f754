import Coordination
import Dispatch
import Logging
import Synchronization

/// The total time for all components to stop, so that the process ends before a supervisor kills it.
final class StopClock: Sendable {
    /// The part of the stop timeout that is reserved for the end of the process.
    static let reserve = Duration.milliseconds(500)
    /// The stop timeout for which the limits of the components are chosen. Supervisors commonly wait for ten seconds.
    static let defaultTimeout = Duration.seconds(10)

    private struct State {
        var deadline: ContinuousClock.Instant?
        /// Names of the components whose `stop()` has not returned, in the order of the calls.
        var stopping: [String] = []
        /// The sum of the limits of all components.
        var reserved = Duration.zero
        /// Resumed when no component is stopping.
        var untilStopped: CheckedContinuation<Void, Never>?
    }

    /// Maximum time of a stop.
    let limit: Duration
    private let state = Mutex(State())

    init(limit: Duration) { self.limit = limit }

    /// - Parameter timeout: the time within which the process must have ended.
    convenience init(timeout: Duration = StopClock.defaultTimeout) { self.init(limit: timeout - Self.reserve) }

    /// The sum of the limits of all components. If it exceeds ``limit``, the last components would have no time left if
    /// all others used theirs.
    var reserved: Duration { state.withLock(\.reserved) }

    /// Adds the limit of a component to the sum.
    func reserve(_ limit: Duration) { state.withLock { $0.reserved += limit } }

    /// Names of the components that are stopping, or have not stopped in time.
    var stopping: [String] { state.withLock { $0.stopping } }

    /// Starts the clock unless it runs, and returns the part of the time that a component gets.
    func time(atMost maximum: Duration) -> Duration {
        state.withLock { state in
            let deadline = state.deadline ?? .now + limit
            state.deadline = deadline
            return max(.zero, min(maximum, deadline - .now))
        }
    }

    /// Waits for the components that have not stopped in their share of the time, for as long as the others have left
    /// some of it.
    ///
    /// - Returns: whether all components have stopped.
    func untilStopped() async -> Bool {
        guard !stopping.isEmpty else { return true }
        return await completes(within: time(atMost: limit)) { [self] in
            await withCheckedContinuation { continuation in
                let hasEnded = state.withLock { state in
                    guard !state.stopping.isEmpty else { return true }
                    state.untilStopped = continuation
                    return false
                }
                if hasEnded { continuation.resume() }
            }
        }
    }

    fileprivate func begins(_ name: String) { state.withLock { $0.stopping.append(name) } }

    fileprivate func ends(_ name: String) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if let index = state.stopping.firstIndex(of: name) { state.stopping.remove(at: index) }
            return state.stopping.isEmpty ? state.untilStopped.take() : nil
        }
        waiting?.resume()
    }
}

/// Stops a component within its share of the stop timeout. If it takes longer, the others still stop in order, and the
/// component has what they leave of the timeout; then it ends with the process.
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
        guard !hasEnded else { return }
        logger.error(
            "a component does not stop in time: the gateway continues without it",
            metadata: ["component": "\(name)"]
        )
    }

    func pause() async { await component.pause() }
    func resume() async { await component.resume() }
}

/// Runs an operation, and returns when it ends, or after `limit` while it continues.
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

/// A continuation that is resumed once, by the first call.
private final class SharedEnd: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }

    func resume(_ value: Bool) { continuation.withLock { $0.take() }?.resume(returning: value) }
}
