import Synchronization

/// A sequence of decoded event contents. The reader decodes them on arrival, so each reader has separate objects. It
/// supports one reader.
///
/// Events with other content, or content that the class can't decode, are skipped. The sequence ends when the
/// communication manager stops, unless documented otherwise; releasing it, or cancelling the task that reads it, ends
/// the observation.
public struct DecodedEvents<Event: Sendable, Element>: AsyncSequence, Sendable {
    let events: AsyncStream<Event>
    let decode: @Sendable (Event) -> Element?

    init(_ events: AsyncStream<Event>, decode: @escaping @Sendable (Event) -> Element?) {
        self.events = events
        self.decode = decode
    }

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(events: events.makeAsyncIterator(), decode: decode)
    }

    /// An iterator that decodes one event after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var events: AsyncStream<Event>.Iterator
        let decode: @Sendable (Event) -> Element?

        /// Returns the next element; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            while let event = await events.next(isolation: actor) {
                if let element = decode(event) { return element }
            }
            return nil
        }
    }
}

/// The readers of the same values.
final class Readers<Value: Sendable>: Sendable {
    private struct State {
        var continuations: [UInt64: AsyncStream<Value>.Continuation] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    deinit { finish() }

    /// Returns the values from now on.
    ///
    /// - Parameters:
    ///   - limit: number of values that are kept for a slow reader. Beyond that, the oldest are dropped.
    ///   - first: the initial value of the stream.
    func stream(keeping limit: Int, first: Value? = nil) -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(limit)) { continuation in
            let id = state.withLock { state in
                state.lastId += 1
                state.continuations[state.lastId] = continuation
                return state.lastId
            }
            if let first { continuation.yield(first) }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.continuations.removeValue(forKey: id) }
            }
        }
    }

    func yield(_ value: Value) {
        for continuation in state.withLock({ Array($0.continuations.values) }) { continuation.yield(value) }
    }

    func finish() {
        let continuations = state.withLock { state in
            defer { state.continuations = [:] }
            return Array(state.continuations.values)
        }
        for continuation in continuations { continuation.finish() }
    }
}
