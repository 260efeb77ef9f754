import Logging

/// The objects of the events of an ``EventStream``, as values.
///
/// Objects that can't be decoded are logged and skipped: another agent can't end the stream by sending them. The stream
/// ends like the stream of events, except that it throws ``SubscriptionRefused`` if the broker refuses the
/// subscription.
public struct ValueStream<Event: CommunicationEvent, Content: CoatyContent>: AsyncSequence, Sendable {
    /// The objects.
    public typealias Element = CoatyValue<Content>
    /// ``SubscriptionRefused``
    public typealias Failure = SubscriptionRefused

    /// The events, with the number of those that were dropped, and the reason of the end.
    public let events: EventStream<Event>
    private let logger: Logger
    private let skipped = DoublingCounter()

    init(_ events: EventStream<Event>, _ logger: Logger) {
        self.events = events
        self.logger = logger
    }

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(events: events, iterator: events.makeAsyncIterator(), logger: logger, skipped: skipped)
    }

    /// An iterator that decodes one object after another.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// ``SubscriptionRefused``
        public typealias Failure = SubscriptionRefused

        fileprivate let events: EventStream<Event>
        fileprivate var iterator: EventStream<Event>.AsyncIterator
        fileprivate let logger: Logger
        fileprivate let skipped: DoublingCounter

        /// Returns the next object; nil at the end.
        ///
        /// - Throws: ``SubscriptionRefused``
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(SubscriptionRefused) -> CoatyValue<Content>? {
            while let event = await iterator.next(isolation: actor) {
                // A channel may also have objects of other types.
                guard let object = event.payload.json["object"],
                    object["objectType"]?.isString(Content.objectType) ?? false
                else { continue }
                do {
                    return try PayloadCoder.decode(from: object)
                } catch {
                    guard let count = skipped.increment() else { continue }
                    logger.notice(
                        "skipped an object that can't be decoded",
                        metadata: [
                            "objectType": "\(Content.objectType)", "source": "\(event.sourceId?.string ?? "")",
                            "error": "\(DropLog.short("\(error)"))", "skipped so far": "\(count)",
                        ]
                    )
                }
            }
            if events.end == .refused { throw SubscriptionRefused() }
            return nil
        }
    }
}

/// The broker refuses the subscription that a stream needs.
public struct SubscriptionRefused: Error, Sendable, Equatable, CustomStringConvertible {
    /// The error as text.
    public var description: String { "the broker refuses the subscription" }
}
