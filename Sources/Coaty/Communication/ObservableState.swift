import Synchronization

/// Whether the communication manager is meant to be connected.
public enum OperatingState: String, Sendable, Hashable {
    case started, stopped
}

/// Whether the communication manager is online: see ``CommunicationManager/isOnline``. Always offline while it is
/// stopped.
public enum CommunicationState: String, Sendable, Hashable {
    case online, offline
}

/// A value and the streams of its changes.
final class ObservableState<Value: Sendable>: Sendable {
    private struct Observer {
        let yield: @Sendable (Value) -> Void
        let finish: @Sendable () -> Void
    }

    private struct State {
        var value: Value
        var observers: [UInt64: Observer] = [:]
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

    /// Sets the value and sends it, even if it is unchanged.
    func send(_ value: Value) {
        state.withLock { $0.send(value) }
    }

    /// Returns the values that are sent, until this object is released. A slow reader gets only the latest value.
    ///
    /// - Parameter includesCurrent: whether the stream begins with the current value.
    func stream(includesCurrent: Bool = true) -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let remove = add(
                Observer(yield: { continuation.yield($0) }, finish: { continuation.finish() }),
                includesCurrent: includesCurrent
            )
            continuation.onTermination = { _ in remove() }
        }
    }

    /// Returns the current value and all values that are sent, until this object is released.
    ///
    /// - Parameter size: returns the number of bytes that a value takes in memory.
    func events(size: @escaping @Sendable (Value) -> Int) -> EventStream<Value> {
        let (stream, continuation) = EventStream.makeStream(of: Value.self, size: size)
        let remove = add(
            Observer(yield: { continuation.yield($0) }, finish: { continuation.finish(.stopped) }),
            includesCurrent: true
        )
        continuation.onEnd(remove)
        return stream
    }

    /// - Returns: a function that removes the observer.
    private func add(_ observer: Observer, includesCurrent: Bool) -> @Sendable () -> Void {
        let id = state.withLock { state in
            state.lastId += 1
            state.observers[state.lastId] = observer
            if includesCurrent { observer.yield(state.value) }
            return state.lastId
        }
        return { [weak self] in _ = self?.state.withLock { $0.observers.removeValue(forKey: id) } }
    }
}

extension ObservableState where Value: Equatable {
    /// Sets the value and sends it; does nothing if it is unchanged.
    func set(_ value: Value) {
        state.withLock { state in
            if state.value != value { state.send(value) }
        }
    }
}
