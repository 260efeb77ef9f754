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

/// A value and the streams of its changes, which end when this object is released.
final class ObservableState<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    // Values are passed to the readers under the lock, to keep the order; a stream only buffers.
    private let readers = Readers<Value>()

    init(_ value: Value) { state = Mutex(value) }

    var value: Value { state.withLock(\.self) }

    /// Sets the value and sends it, even if it is unchanged.
    func send(_ value: Value) {
        state.withLock { state in
            state = value
            readers.yield(value)
        }
    }

    /// Returns the values that are sent. A slow reader gets only the latest value.
    ///
    /// - Parameter includesCurrent: whether the stream begins with the current value.
    func stream(includesCurrent: Bool = true) -> AsyncStream<Value> {
        state.withLock { readers.latest(first: includesCurrent ? .some($0) : nil) }
    }

    /// Returns the current value and all values that are sent.
    ///
    /// - Parameter size: returns the number of bytes that a value takes in memory.
    func events(size: @escaping @Sendable (Value) -> Int) -> EventStream<Value> {
        state.withLock { readers.all(first: .some($0), size: size) }
    }
}

extension ObservableState where Value: Equatable {
    /// Sets the value and sends it; does nothing if it is unchanged.
    func set(_ value: Value) {
        state.withLock { state in
            guard state != value else { return }
            state = value
            readers.yield(value)
        }
    }
}
