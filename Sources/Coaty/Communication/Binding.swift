/// Carries publications and subscriptions over a messaging protocol.
///
/// A binding connects, connects again, maps Coaty's addresses to those of its protocol, and moves bytes. The session decides
/// what is sent in which order, and what is said again after a reconnect: the binding takes operations from its
/// ``BindingSession`` one by one. `InMemoryBinding` and the module CoatyMQTT show how.
public protocol Binding: Sendable {
    /// Starts to connect. From now on the binding connects again whenever the connection is lost, until ``leave()``.
    func join(_ session: BindingSession)

    /// Says that ``BindingSession/nextOperation()`` has something again. Called on any thread; must not block.
    func wake()

    /// Carries out the operations that are left, of which the last is ``SessionOperation/disconnect``, and returns when the
    /// connection is closed, or after a time limit of the binding.
    func leave() async

    /// The route of an IO source without an external route. Opaque to the core: it travels in Associate events.
    func ioRoute(ofSource sourceId: CoatyUUID, namespace: String) -> String

    /// Returns whether IO values may flow on a route: one that a binding of this kind has made, or an external one. Anything
    /// else would let a router make a source publish under another name.
    func isIoRoute(_ route: String) -> Bool

    /// Returns whether raw events may be published on a topic.
    func isPublishable(rawTopic: String) -> Bool

    /// Returns whether raw events may be observed by a topic filter.
    func isObservable(rawTopicFilter: String) -> Bool
}

/// What a binding does for a session.
public enum SessionOperation: Sendable {
    /// Subscribe. Each request is answered once by ``BindingSession/answer(_:isGranted:)``, unless the connection is lost before.
    case subscribe([SubscriptionRequest])
    /// End a subscription.
    case unsubscribe(EventSelector)
    /// Publish. Reported by ``BindingSession/publicationWritten()`` or ``BindingSession/publicationRefused()``.
    case publish(Publication)
    /// Leave in an orderly way, so that the broker does not publish the farewell.
    case disconnect
}

/// A subscription that a binding is asked for.
public struct SubscriptionRequest: Sendable, Hashable {
    /// What is subscribed to.
    public let selector: EventSelector
    /// Distinguishes it from other requests for the same.
    let ticket: UInt64
    /// Whether the agent can't do without it.
    public let isEssential: Bool
}

/// A session as its binding sees it, from `start` to `stop`.
///
/// All methods may be called on any thread, but those that report what happened in the order in which it did. Once the
/// session is over, or belongs to a later `start`, they do nothing: a thread that was held back does no harm.
public final class BindingSession: Sendable {
    /// The id of the agent's identity; nil for a session that only observes.
    public let identityId: CoatyUUID?
    /// The namespace that the agent publishes in.
    public let namespace: String
    /// Whether events of all namespaces are observed, not only those of ``namespace``.
    public let observesAllNamespaces: Bool
    /// What the broker publishes when the agent is lost; nil for a session that only observes.
    public let farewell: Publication?
    private let session: Session
    /// The number of the start that this belongs to.
    private let life: Int
    /// Held strongly: an agent that was started lives until it is stopped.
    private let delegate: any SessionDelegate

    init(session: Session, life: Int, delegate: any SessionDelegate) {
        self.session = session
        self.life = life
        self.delegate = delegate
        identityId = session.configuration.identityId
        namespace = session.configuration.namespace
        observesAllNamespaces = session.configuration.observesAllNamespaces
        farewell = session.configuration.farewell
    }

    /// Whether the connection was reported and not yet reported lost.
    public var isConnected: Bool { session.isConnected(life) }

    /// Whether the session is about to end: only what is left is to be carried out.
    public var isLeaving: Bool { session.isLeaving(life) }

    /// Reports that the broker has accepted the connection.
    public func connected() { session.handle(.connected(life: life)) }

    /// Reports that an attempt to connect has failed.
    public func failed(_ error: ConnectionError) { session.handle(.failed(life: life, error)) }

    /// Reports that the connection is lost, or left.
    public func lost(_ error: ConnectionError?) { session.handle(.lost(life: life, error)) }

    /// Reports that the broker has granted or refused a subscription. A later answer to the same request replaces an earlier one.
    public func answer(_ request: SubscriptionRequest, isGranted: Bool) {
        session.answer(request, isGranted: isGranted, life: life)
    }

    /// Reports a message.
    public func received(_ message: InboundMessage) {
        if session.isCurrent(life) { delegate.received(message) }
    }

    /// Reports a message that was dropped, because it is too long or its address is not that of an event.
    ///
    /// - Parameter origin: where it came from; its observers learn that they have missed it. nil if it had no observers.
    public func dropped(_ reason: String, label: String, origin: InboundMessage.Origin? = nil) {
        if session.isCurrent(life) { delegate.dropped(reason, label: label, origin: origin) }
    }

    /// Reports that the broker may have dropped messages, because the binding did not read them in time.
    public func mayHaveMissed() {
        if session.isCurrent(life) { delegate.mayHaveMissed() }
    }

    /// Takes the next operation; nil where there is none, then ``Binding/wake()`` announces the next.
    ///
    /// To be called while the connection is up, and for publications only as fast as they are written: those that stay in the
    /// outbox are kept when the connection is lost.
    public func nextOperation() -> SessionOperation? { session.nextOperation(life) }

    /// Reports that the publication that was taken first, of those not yet reported, is written.
    public func publicationWritten() { session.publicationDone(isWritten: true, life: life) }

    /// Reports that the publication that was taken first, of those not yet reported, can't be written and is given up.
    public func publicationRefused() { session.publicationDone(isWritten: false, life: life) }
}

/// Receives what comes in over a session.
protocol SessionDelegate: AnyObject, Sendable {
    /// Called on the binding's thread for each message.
    func received(_ message: InboundMessage)
    /// Called on the binding's thread for each message that the binding dropped.
    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?)
    /// Called on the binding's thread when messages of any origin may have been missed.
    func mayHaveMissed()
    /// Called when a stop has discarded publications and observations, before it returns.
    func sessionEnded()
}
