import Synchronization

@testable import Coaty

/// A clock that stands still until a test moves it.
final class ManualClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        let offset: Swift.Duration

        func advanced(by duration: Swift.Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Swift.Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant(offset: .zero)
        var sleepers: [Int: (deadline: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var lastId = 0
    }

    private let state = Mutex(State())

    var now: Instant { state.withLock(\.now) }
    var minimumResolution: Swift.Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Swift.Duration?) async throws {
        let id = state.withLock { state in
            state.lastId += 1
            return state.lastId
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                state.withLock { state in
                    if Task.isCancelled {
                        continuation.resume(throwing: CancellationError())
                    } else if deadline <= state.now {
                        continuation.resume()
                    } else {
                        state.sleepers[id] = (deadline, continuation)
                    }
                }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
        }
    }

    func advance(byMilliseconds milliseconds: Int) {
        state.withLock { state in
            state.now = state.now.advanced(by: .milliseconds(milliseconds))
            for (id, sleeper) in state.sleepers where sleeper.deadline <= state.now {
                state.sleepers[id] = nil
                sleeper.continuation.resume()
            }
        }
    }

    /// Waits until those who sleep are to be woken at these times, in milliseconds.
    func untilSleeping(untilMilliseconds deadlines: Int...) async throws {
        try await withPatience { [self] in
            let wanted = deadlines.map { Swift.Duration.milliseconds($0) }
            while state.withLock({ $0.sleepers.values.map(\.deadline.offset).sorted() }) != wanted {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }
}
