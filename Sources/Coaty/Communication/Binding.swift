/// Carries publications and subscriptions over a messaging protocol.
///
/// A binding connects, reconnects, maps Coaty's addresses to those of its protocol, and moves bytes. The session
/// decides the order of operations and which of them are repeated after a reconnect: the binding takes operations from
/// its ``BindingSession`` one by one. See `InMemoryBinding` and the module CoatyMQTT for examples.
public protocol Binding: Sendable {
    /// Starts to connect. From now on the binding reconnects whenever the connection is lost, until ``leave()``.
    func join(_ session: BindingSession)

    /// Signals that ``BindingSession/nextOperation()`` has an operation again. Called on any thread; must not block.
    func wake()

    /// Performs the remaining operations, of which the last is ``SessionOperation/disconnect``, and returns when the
    /// connection is closed, or after a time limit of the binding.
    func leave() async

    /// Returns the size of the packet of a publication, in bytes. Called only if
    /// ``ConnectionProperties/maximumPacketSize`` is set.
    func packetSize(of publication: Publication) -> Int

    /// Returns the route of an IO source without an external route. The route is opaque to the core and is sent in
    /// Associate events.
    func ioRoute(ofSource sourceId: CoatyUUID, namespace: String) -> String

    /// Returns whether IO values may be sent on a route: a route that a binding of this kind has made, or an external
    /// one. Other routes are refused, because a router could otherwise make a source publish under another name.
    func isIoRoute(_ route: String) -> Bool

    /// Returns whether raw events may be published on a topic.
    func isPublishable(rawTopic: String) -> Bool

    /// Returns whether raw events may be observed by a topic filter.
    func isObservable(rawTopicFilter: String) -> Bool
}

extension Binding {
    /// Returns the size of the payload, for bindings whose addresses do not count.
    public func packetSize(of publication: Publication) -> Int { publication.payload.count }
}

/// An operation that a binding performs for a session.
public enum SessionOperation: Sendable {
    /// Subscribe. Each request is answered once by ``BindingSession/answer(_:isGranted:)``, unless the connection is
    /// lost before.
    case subscribe([SubscriptionRequest])
    /// End a subscription.
    case unsubscribe(EventSelector)
    /// Publish. Reported by ``BindingSession/publicationsWritten(_:)`` or ``BindingSession/publicationRefused()``. See
    /// ``Publication/isWrittenAlone``.
    case publish(Publication)
    /// Leave in an orderly way, so that the broker does not publish the farewell.
    case disconnect
}

/// A subscription that a session requests from its binding.
public struct SubscriptionRequest: Sendable, Hashable {
    /// The selector of the subscription.
    public let selector: EventSelector
    /// Distinguishes the request from other requests for the same selector.
    let ticket: UInt64
    /// Whether the agent can't work without the subscription.
    public let isEssential: Bool
    /// Whether the subscription exists, and the broker shall deliver its retained messages again.
    public var isRepeated = false
}
