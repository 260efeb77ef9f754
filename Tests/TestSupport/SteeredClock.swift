import Synchronization

/// A clock that moves only when a test advances it.
public final class SteeredClock: Clock {
    /// A point in time, as the distance from the start of the clock.
    public struct Instant: InstantProtocol {
        let offset: Duration

        /// Returns a later point in time.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// Returns the duration until another point in time.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Returns whether one point in time is before the other.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant(offset: .zero)
        var lastId: UInt64 = 0
        var sleepers: [UInt64: (due: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
    }

    private let state = Mutex(State())

    /// Creates a clock at its start.
    public init() {}

    /// The current time.
    public var now: Instant { state.withLock(\.now) }
    /// The smallest step of the clock.
    public var minimumResolution: Duration { .nanoseconds(1) }
    /// The number of sleeping tasks.
    public var sleepers: Int { state.withLock(\.sleepers.count) }
    /// The deadlines of the sleeping tasks, relative to the start of the clock, in ascending order.
    public var deadlines: [Duration] { state.withLock { $0.sleepers.values.map(\.due.offset).sorted() } }

    /// Sleeps until the clock reaches a deadline.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.lastId += 1
            return state.lastId
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if deadline <= state.now { return .success(()) }
                    state.sleepers[id] = (deadline, continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Advances the clock, and wakes the tasks whose deadline has passed in the order of their deadlines.
    public func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.due <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.due < $1.due }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }
}
