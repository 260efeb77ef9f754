import Synchronization

/// What events hold, decoded by the reader as it comes: so each reader has objects of its own. For one reader.
///
/// Events that hold something else, or nothing that its class understands, are left out. It ends when the communication
/// manager stops, unless said otherwise; dropping it, or cancelling the task that reads it, ends the observation.
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

    /// Decodes one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var events: AsyncStream<Event>.Iterator
        let decode: @Sendable (Event) -> Element?

        /// The next one; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            while let event = await events.next(isolation: actor) {
                if let element = decode(event) { return element }
            }
            return nil
        }
    }
}

/// Those who read the same values.
final class Readers<Value: Sendable>: Sendable {
    private struct State {
        var continuations: [UInt64: AsyncStream<Value>.Continuation] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    deinit { finish() }

    /// The values from now on.
    ///
    /// - Parameters:
    ///   - limit: how many are kept for a reader that is behind; then the oldest are dropped.
    ///   - first: what to begin with.
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
