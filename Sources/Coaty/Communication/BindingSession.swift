/// The binding's view of a session, from `start` to `stop`.
///
/// All methods may be called on any thread, but reports must be made in the order in which their events happened. Once
/// the session is over, or a later `start` has replaced it, the methods do nothing, so that a delayed thread does no
/// harm.
public final class BindingSession: Sendable {
    /// The id of the agent's identity; nil for a session that only observes.
    public let identityId: CoatyUUID?
    /// The namespace that the agent publishes in.
    public let namespace: String
    /// Whether events of all namespaces are observed, not only those of ``namespace``.
    public let observesAllNamespaces: Bool
    /// Whether the session publishes only what brokers may refuse by closing the connection. Lost connections are expected.
    public let isQuarantine: Bool
    /// The publication that the broker sends when the agent's connection is lost; nil for a session that only observes.
    public let farewell: Publication?
    private let session: Session
    /// The number of the start that this session belongs to.
    private let life: Int
    /// A strong reference: an agent that was started lives until it is stopped.
    private let delegate: any SessionDelegate

    init(session: Session, life: Int, delegate: any SessionDelegate) {
        self.session = session
        self.life = life
        self.delegate = delegate
        identityId = session.configuration.identityId
        namespace = session.configuration.namespace
        observesAllNamespaces = session.configuration.observesAllNamespaces
        isQuarantine = session.configuration.guarded != nil
        farewell = session.configuration.farewell
    }

    /// Whether the binding has reported the connection and not yet its loss.
    public var isConnected: Bool { session.isConnected(life) }

    /// Whether the session is about to end: the binding only performs the remaining operations.
    public var isLeaving: Bool { session.isLeaving(life) }

    /// Reports that the broker has accepted the connection.
    ///
    /// - Parameter properties: what the broker has stated.
    public func connected(_ properties: ConnectionProperties = ConnectionProperties()) {
        session.note(properties, life: life)
        session.handle(.connected(life: life))
    }

    /// Reports that an attempt to connect has failed.
    ///
    /// - Parameter isFormerBroker: whether it was an attempt to connect to the broker of the last connection.
    public func failed(_ error: ConnectionError, isFormerBroker: Bool = true) {
        session.handleFailure(error, isFormerBroker: isFormerBroker, life: life)
    }

    /// Reports that the connection is lost or was closed by ``Binding/leave()``.
    ///
    /// - Parameter byPublication: whether the broker may have closed it because of a publication.
    public func lost(_ error: ConnectionError?, byPublication: Bool = false) {
        session.handleLoss(error, byPublication: byPublication, life: life)
    }

    /// Reports that the broker has granted or refused a subscription. A later answer to the same request replaces an
    /// earlier one.
    public func answer(_ request: SubscriptionRequest, isGranted: Bool) {
        session.answer(request, isGranted: isGranted, life: life)
    }

    /// Reports a received message.
    public func received(_ message: InboundMessage) {
        if session.isCurrent(life) { delegate.received(message) }
    }

    /// Reports a message that was dropped because it is too long or its address is not that of an event.
    ///
    /// - Parameters:
    ///   - reason: what was dropped, for the log.
    ///   - label: the protocol's name for the source or destination.
    ///   - origin: the origin of the message; its observers get a gap. nil if it had no observers.
    public func dropped(_ reason: String, label: String, origin: InboundMessage.Origin? = nil) {
        if session.isCurrent(life) { delegate.dropped(reason, label: label, origin: origin) }
    }

    /// Reports that the broker may have dropped messages, because the binding did not read them in time.
    public func mayHaveMissed() {
        if session.isCurrent(life) { delegate.mayHaveMissed() }
    }

    /// Returns the next operation; nil if there is none. Then ``Binding/wake()`` announces the next one.
    ///
    /// Call it while the connection is up, and take publications only as fast as they are written: publications that
    /// stay in the outbox are kept when the connection is lost.
    public func nextOperation() -> SessionOperation? { session.nextOperation(life) }

    /// Whether ``nextOperation()`` has an operation. A binding can then send several operations together.
    public var hasOperations: Bool { session.hasOperations(life) }

    /// Reports that the oldest publications that were taken and not yet reported are written.
    ///
    /// - Parameter count: the number of publications.
    public func publicationsWritten(_ count: Int = 1) {
        session.publicationsDone(count, areWritten: true, life: life)
    }

    /// Reports that the broker has read the oldest publications that were reported as written and not yet as read.
    public func publicationsRead(_ count: Int) { session.publicationsRead(count, life: life) }

    /// Reports that the oldest publication that was taken and not yet reported can't be written and is given up.
    public func publicationRefused() { session.publicationsDone(1, areWritten: false, life: life) }
}

/// Receives the messages of a session.
protocol SessionDelegate: AnyObject, Sendable {
    /// Called on the binding's thread for each message.
    func received(_ message: InboundMessage)
    /// Called on the binding's thread for each message that the binding dropped.
    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?)
    /// Called on the binding's thread if messages of any origin may have been missed.
    func mayHaveMissed()
    /// Called when a stop has discarded publications and observations, before it returns.
    func sessionEnded()
}
