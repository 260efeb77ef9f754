import DequeModule
import Synchronization

/// The reason why a stream of events has ended.
public enum StreamEnd: String, Sendable, Hashable {
    /// The communication manager stopped, the broker closed several connections because of a request, or the object
    /// whose values are observed was released or unregistered.
    case stopped
    /// The broker refuses the subscription of the answers to a request.
    case refused
    /// The time limit of a request was reached.
    case timeLimit
    /// The task that reads the stream was cancelled.
    case cancelled
}

/// Events in the order of their arrival, for one reader.
///
/// The stream keeps at most ``CommunicationManager/streamBuffer`` events and
/// ``CommunicationManager/streamBufferBytes`` for a slow reader. Beyond that, the oldest are dropped, and ``dropped``
/// counts them; the latest event is always kept. Releasing the stream and its iterators, or cancelling the task that
/// reads it, ends the observation or request.
///
/// ```swift
/// let answers = try manager.publishDiscover(event, timeLimit: .seconds(1))
/// for await answer in answers { … }
/// if answers.end == .refused { … }
/// ```
public struct EventStream<Element: Sendable>: AsyncSequence, Sendable {
    /// Reading never fails: ``end`` is the reason why the stream ended.
    public typealias Failure = Never

    private let buffer: EventBuffer<Element>
    private let signals: AsyncStream<Void>

    /// Number of events that were dropped so far, because they were read too slowly.
    public var dropped: Int { buffer.dropped }

    /// Why the stream has ended; nil before. Events that arrived before the end can still be read.
    public var end: StreamEnd? { buffer.end }

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(buffer: buffer, signals: signals.makeAsyncIterator())
    }

    /// An iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// Reading never fails.
        public typealias Failure = Never

        fileprivate let buffer: EventBuffer<Element>
        fileprivate var signals: AsyncStream<Void>.AsyncIterator

        /// Returns the next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            // The end of the signals ends the observation.
            if Task.isCancelled {
                _ = await signals.next(isolation: actor)
                return nil
            }
            while true {
                if let element = buffer.removeFirst() { return element }
                guard await signals.next(isolation: actor) != nil else { return buffer.removeFirst() }
            }
        }
    }
}

extension EventStream {
    /// Adds events to a stream, and ends it.
    public struct Continuation: Sendable {
        fileprivate let buffer: EventBuffer<Element>
        fileprivate let signal: AsyncStream<Void>.Continuation
        fileprivate let size: @Sendable (Element) -> Int
        fileprivate let ending: Ending

        /// Adds an event.
        ///
        /// - Returns: the number of dropped events so far, if adding this one dropped some; otherwise nil.
        @discardableResult
        public func yield(_ element: Element) -> Int? {
            let dropped = buffer.append(element, size: size(element))
            signal.yield()
            return dropped
        }

        /// Ends the stream; does nothing after the first call.
        public func finish(_ end: StreamEnd) {
            buffer.finish(end)
            signal.finish()
        }

        /// Adds a function that is called after the end, whatever its reason; at once if the stream has ended.
        public func onEnd(_ action: @escaping @Sendable () -> Void) { ending.append(action) }
    }

    /// Creates a stream.
    ///
    /// - Parameters:
    ///   - type: the type of the events.
    ///   - size: returns the number of bytes that an event takes in memory.
    public static func makeStream(
        of type: Element.Type = Element.self,
        size: @escaping @Sendable (Element) -> Int
    ) -> (stream: EventStream, continuation: Continuation) {
        let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let buffer = EventBuffer<Element>()
        let ending = Ending { buffer.finish(.cancelled) }
        signal.onTermination = { _ in ending.reach() }
        return (
            EventStream(buffer: buffer, signals: signals),
            Continuation(buffer: buffer, signal: signal, size: size, ending: ending)
        )
    }
}

/// The events that a reader has not read.
private final class EventBuffer<Element: Sendable>: Sendable {
    private struct State {
        var elements: Deque<(element: Element, size: Int)> = []
        var bytes = 0
        var dropped = 0
        var end: StreamEnd?

        mutating func removeFirst() -> Element? {
            guard let (element, size) = elements.popFirst() else { return nil }
            bytes -= size
            return element
        }
    }

    private let state = Mutex(State())

    var dropped: Int { state.withLock(\.dropped) }
    var end: StreamEnd? { state.withLock(\.end) }

    func append(_ element: Element, size: Int) -> Int? {
        // Dropped events are released outside the lock: they may end other observations.
        var released: [Element] = []
        return state.withLock { state in
            guard state.end == nil else { return nil }
            state.elements.append((element, size))
            state.bytes += size
            while state.elements.count > 1,
                state.elements.count > CommunicationManager.streamBuffer
                    || state.bytes > CommunicationManager.streamBufferBytes
            {
                if let first = state.removeFirst() { released.append(first) }
            }
            state.dropped += released.count
            return released.isEmpty ? nil : state.dropped
        }
    }

    func removeFirst() -> Element? { state.withLock { $0.removeFirst() } }

    func finish(_ end: StreamEnd) {
        state.withLock { if $0.end == nil { $0.end = end } }
    }
}
