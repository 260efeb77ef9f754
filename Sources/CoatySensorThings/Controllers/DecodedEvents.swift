import Coaty

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
