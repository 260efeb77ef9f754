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
final class ObservableState<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var observers: [UInt64: AsyncStream<Value>.Continuation] = [:]
        var lastId: UInt64 = 0

        // Yielding under the lock keeps the order; a continuation only buffers.
        mutating func send(_ value: Value) {
            self.value = value
            for observer in observers.values { observer.yield(value) }
        }
    }

    private let state: Mutex<State>

    init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    deinit {
        for observer in state.withLock(\.observers).values { observer.finish() }
    }

    var value: Value { state.withLock(\.value) }

    /// Takes a value, also one that is the same, and tells it.
    func send(_ value: Value) {
        state.withLock { $0.send(value) }
    }

    /// The current value, then each one that is told, until this is released. Of those that are not read in time the latest
    /// are kept.
    func stream(buffering limit: Int = 1) -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(limit)) { continuation in
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

extension ObservableState where Value: Equatable {
    /// Changes the value.
    ///
    /// - Returns: false where it was the same already; then nobody is told.
    @discardableResult
    func set(_ value: Value) -> Bool {
        state.withLock { state in
            guard state.value != value else { return false }
            state.send(value)
            return true
        }
    }
}
