import Synchronization

/// The readers of the same values. Their streams end when this object is released.
package final class Readers<Value: Sendable>: Sendable {
    private struct Reader {
        let yield: @Sendable (Value) -> Void
        let finish: @Sendable () -> Void
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    deinit { finish() }

    /// Returns the values from now on. A slow reader gets only the latest one.
    ///
    /// - Parameter first: the first value of the stream, if there is one.
    package func latest(first: Value? = nil) -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let remove = add(
                Reader(yield: { continuation.yield($0) }, finish: { continuation.finish() }),
                first: first
            )
            continuation.onTermination = { _ in remove() }
        }
    }

    /// Returns all values from now on.
    ///
    /// - Parameters:
    ///   - first: the first value of the stream, if there is one.
    ///   - size: returns the number of bytes that a value takes in memory.
    package func all(first: Value? = nil, size: @escaping @Sendable (Value) -> Int) -> EventStream<Value> {
        let (stream, continuation) = EventStream.makeStream(of: Value.self, size: size)
        let remove = add(
            Reader(yield: { continuation.yield($0) }, finish: { continuation.finish(.stopped) }),
            first: first
        )
        continuation.onEnd(remove)
        return stream
    }

    /// - Returns: a function that removes the reader.
    private func add(_ reader: Reader, first: Value?) -> @Sendable () -> Void {
        let id = state.withLock { state in
            state.lastId += 1
            state.readers[state.lastId] = reader
            // Under the lock, so that it is the first; a stream only buffers.
            if let first { reader.yield(first) }
            return state.lastId
        }
        return { [weak self] in _ = self?.state.withLock { $0.readers.removeValue(forKey: id) } }
    }

    /// Adds a value to all streams.
    package func yield(_ value: Value) {
        for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(value) }
    }

    /// Ends the streams.
    package func finish() {
        let readers = state.withLock { state in
            defer { state.readers = [:] }
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }
}
