/// A controller that publishes the values of the agent's IO sources at the negotiated rate, and reports whether they
/// are associated.
///
/// Its streams start with the current value, followed by each change; a slow reader gets only the latest change. They
/// continue when the communication manager is stopped and started again, and end when the container is shut down.
open class IoSourceController: Controller {
    private struct Source {
        let publisher: IoSourcePublisher
        let state: IoPointState
    }

    /// The sources that calls have named, by their object ids.
    private var sources: [CoatyUUID: Source] = [:]

    /// Publishes a JSON value now or later, or discards it, depending on the source's strategy and the update rate; see
    /// ``IoSourcePublisher``. The strategy is read when the source is first passed to this controller.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses raw values;
    ///   ``CommunicationError/queueFull(publications:bytes:)``; `EncodingError`.
    @discardableResult
    public func publish(source: IoSource, value: AnyCodable) throws -> IoSourcePublisher.Outcome {
        try registered(source).publisher.publish(.with(ioSource: source, value: value))
    }

    /// Publishes raw bytes now or later, or discards them.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the source uses JSON values;
    ///   ``CommunicationError/queueFull(publications:bytes:)``.
    @discardableResult
    public func publish(source: IoSource, value: [UInt8]) throws(CommunicationError) -> IoSourcePublisher.Outcome {
        try registered(source).publisher.publish(.with(ioSource: source, value: value))
    }

    /// Returns the update rate that is recommended to the source, in milliseconds; nil if there is none, or no
    /// association.
    public func observeUpdateRate(source: IoSource) -> AsyncStream<Int?> {
        registered(source).state.updateRate.stream()
    }

    /// Returns whether the source is associated: the current state, then each change.
    public func observeAssociation(source: IoSource) -> AsyncStream<Bool> {
        registered(source).state.isAssociated.stream()
    }

    /// Returns whether the source is currently associated.
    public func isAssociated(source: IoSource) -> Bool { registered(source).state.isAssociated.value }

    /// Ends the streams, and discards queued values.
    open override func onDispose() {
        super.onDispose()
        sources = [:]
    }

    private func registered(_ source: IoSource) -> Source {
        if let known = sources[source.objectId] { return known }
        let new = Source(
            publisher: IoSourcePublisher(ioSource: source, communicationManager: communicationManager),
            state: IoPointState(of: source, communicationManager)
        )
        sources[source.objectId] = new
        return new
    }
}
