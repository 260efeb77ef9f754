import Synchronization

/// Whether the communication manager is meant to be connected.
public enum OperatingState: String, Sendable, Hashable {
    case started, stopped
}

/// Whether the communication manager is connected. Always offline while it is stopped.
public enum CommunicationState: String, Sendable, Hashable {
    case online, offline
}

/// A value that changes, and those who want to know.
final class ObservableState<Value: Sendable & Equatable>: Sendable {
    private struct State {
        var value: Value
        var observers: [UInt64: AsyncStream<Value>.Continuation] = [:]
        var lastId: UInt64 = 0
    }

    private let state: Mutex<State>

    init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    var value: Value { state.withLock(\.value) }

    /// Changes the value.
    ///
    /// - Returns: false where it was the same already; then nobody is told.
    @discardableResult
    func set(_ value: Value) -> Bool {
        state.withLock { state in
            guard state.value != value else { return false }
            state.value = value
            // Yielding under the lock keeps the order; a continuation only buffers.
            for observer in state.observers.values { observer.yield(value) }
            return true
        }
    }

    /// The current value, then each change. Of changes that are not read in time the latest is kept.
    func stream() -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = state.withLock { state in
                state.lastId += 1
                state.observers[state.lastId] = continuation
                continuation.yield(state.value)
                return state.lastId
            }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
            }
        }
    }
}
