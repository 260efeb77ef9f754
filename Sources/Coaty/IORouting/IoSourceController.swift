/// Publishes the values of the agent's IO sources at the rate that is wanted, and tells whether they are associated.
///
/// Its streams give the current value first, then each change; of changes that are not read in time the latest is kept. They
/// go on when the communication manager is stopped and started again, and end when the container is shut down.
open class IoSourceController: Controller {
    private struct Source {
        let publisher: IoSourcePublisher
        let state: IoPointState
    }

    /// The sources that were asked for, by their object ids.
    private var sources: [CoatyUUID: Source] = [:]

    /// Publishes a JSON value, now or later, as the source's strategy and the update rate say, or discards it; see
    /// ``IoSourcePublisher``. The source's strategy counts as it was when the source was first named to this controller.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` where the source uses raw values;
    ///   ``CommunicationError/queueFull(publications:bytes:)``; `EncodingError`.
    @discardableResult
    public func publish(source: IoSource, value: AnyCodable) throws -> IoSourcePublisher.Outcome {
        try registered(source).publisher.publish(.with(ioSource: source, value: value))
    }

    /// Publishes raw bytes, now or later, or discards them.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` where the source uses JSON values;
    ///   ``CommunicationError/queueFull(publications:bytes:)``.
    @discardableResult
    public func publish(source: IoSource, value: [UInt8]) throws(CommunicationError) -> IoSourcePublisher.Outcome {
        try registered(source).publisher.publish(.with(ioSource: source, value: value))
    }

    /// The update rate that is recommended to the source, in milliseconds; nil where none is, and without an association.
    public func observeUpdateRate(source: IoSource) -> AsyncStream<Int?> {
        registered(source).state.updateRate.stream()
    }

    /// Whether the source is associated.
    public func observeAssociation(source: IoSource) -> AsyncStream<Bool> {
        registered(source).state.isAssociated.stream()
    }

    /// Whether the source is associated at this moment.
    public func isAssociated(source: IoSource) -> Bool { registered(source).state.isAssociated.value }

    /// Ends the streams, and discards values that wait.
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
