public import Coaty
import Synchronization

/// A sequence of decoded event contents. The reader decodes them on arrival, so each reader has separate objects. It
/// supports one reader.
///
/// Events with other content, or content that the class can't decode, are skipped. The sequence ends when the
/// communication manager stops, unless documented otherwise; releasing it, or cancelling the task that reads it, ends
/// the observation.
public struct DecodedEvents<Event: Sendable, Element>: AsyncSequence, Sendable {
    let events: EventStream<Event>
    let decode: @Sendable (Event) -> Element?

    init(_ events: EventStream<Event>, decode: @escaping @Sendable (Event) -> Element?) {
        self.events = events
        self.decode = decode
    }

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(events: events.makeAsyncIterator(), decode: decode)
    }

    /// An iterator that decodes one event after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var events: EventStream<Event>.AsyncIterator
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
    private struct Reader {
        let yield: @Sendable (Value) -> Void
        let finish: @Sendable () -> Void
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    deinit { finish() }

    /// Returns a value, and those from now on. A slow reader gets only the latest one.
    func latest(first: Value) -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let remove = add(Reader(yield: { continuation.yield($0) }, finish: { continuation.finish() }))
            continuation.yield(first)
            continuation.onTermination = { _ in remove() }
        }
    }

    /// Returns the values from now on.
    ///
    /// - Parameter size: returns the number of bytes that a value takes in memory.
    func all(size: @escaping @Sendable (Value) -> Int) -> EventStream<Value> {
        let (stream, continuation) = EventStream.makeStream(of: Value.self, size: size)
        continuation.onEnd(
            add(Reader(yield: { continuation.yield($0) }, finish: { continuation.finish(.stopped) }))
        )
        return stream
    }

    /// - Returns: a function that removes the reader.
    private func add(_ reader: Reader) -> @Sendable () -> Void {
        let id = state.withLock { state in
            state.lastId += 1
            state.readers[state.lastId] = reader
            return state.lastId
        }
        return { [weak self] in _ = self?.state.withLock { $0.readers.removeValue(forKey: id) } }
    }

    func yield(_ value: Value) {
        for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(value) }
    }

    func finish() {
        let readers = state.withLock { state in
            defer { state.readers = [:] }
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }
}
