/// A controller that tracks the lifecycle of agents or other objects.
///
/// Agents advertise their own identities, answer Discover events for them, and deadvertise them. For other objects, an
/// agent does this with ``advertiseDiscoverableObject(object:shouldSetParentObjectId:)`` and the related functions.
///
/// An object is shared if its parent is the identity of its agent or one of the agent's IO nodes. A shared object is
/// withdrawn together with the agent, even when the connection is lost, because the broker then deadvertises the
/// identity and IO nodes for the agent. After a reconnect, the agent advertises these objects again: its identity, its
/// IO nodes, and the latest version of each shared object that it has not deadvertised. This applies to all objects
/// that are advertised with ``CommunicationManager/publishAdvertise(_:)``, except log objects. Other objects were not
/// withdrawn and are not advertised again.
///
/// ```swift
/// let agents = try observeObjectLifecycleInfoByCoreType(coreType: .Identity)
/// Task {
///     for await info in agents {
///         for agent in try info.added ?? [] { … }
///     }
/// }
/// .disposed(by: disposeBag)
/// ```
open class ObjectLifecycleController: Controller {
    /// Maximum number of objects that one observation tracks. Further objects are not tracked, which is logged.
    public nonisolated static let maximumObjects = 10_000
    /// Maximum size of the objects of one observation, in bytes. Objects beyond it are not tracked, which is logged.
    public nonisolated static let maximumBytes = 64 << 20

    private let discoverables = Discoverables()

    /// Continues to answer Discover events with the discoverable objects after a stop. Overrides must call this.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        discoverables.resume(communicationManager)
    }

    /// Tracks the objects of a core type.
    ///
    /// The objects are discovered now and after each reconnect. An object that was deadvertised while this agent was
    /// offline stays until it is deadvertised again. The stream ends when the communication manager stops; releasing it
    /// ends the tracking. It supports one reader.
    ///
    /// - Parameters:
    ///   - coreType: `Identity` for agents.
    ///   - objectFilter: selects the tracked objects; all if absent. Called on the binding's thread; must not block. An
    ///     object that no longer matches is removed.
    /// - Throws: the errors of ``DiscoverEvent/with(coreTypes:)``.
    public func observeObjectLifecycleInfoByCoreType(
        coreType: CoreType,
        objectFilter: (@Sendable (CoatyObject) -> Bool)? = nil
    ) throws -> AsyncStream<ObjectLifecycleInfo> {
        try track(.advertise(withCoreType: coreType), .with(coreTypes: [coreType]), objectFilter)
    }

    /// Tracks the objects of an object type, like ``observeObjectLifecycleInfoByCoreType(coreType:objectFilter:)`` for
    /// a core type.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeObjectLifecycleInfoByObjectType(
        with objectType: String,
        objectFilter: (@Sendable (CoatyObject) -> Bool)? = nil
    ) throws -> AsyncStream<ObjectLifecycleInfo> {
        try track(.advertise(withObjectType: objectType), .with(objectTypes: [objectType]), objectFilter)
    }

    private func track(
        _ advertisements: EventObservation<AdvertiseEvent>,
        _ request: DiscoverEvent,
        _ objectFilter: (@Sendable (CoatyObject) -> Bool)?
    ) -> AsyncStream<ObjectLifecycleInfo> {
        let tracker = ObjectTracker(
            advertisements,
            request,
            objectFilter: objectFilter,
            communicationManager: communicationManager
        )
        return AsyncStream { await tracker.next() }
    }

    /// Advertises an object, and answers Discover events for its types or its object id.
    ///
    /// - Parameters:
    ///   - object: the object, which is copied at this moment; see ``readvertiseDiscoverableObject(object:)``.
    ///   - shouldSetParentObjectId: whether the agent's identity becomes the object's parent, so that the object is
    ///     withdrawn together with the agent.
    /// - Returns: the observation of Discover events. It ends when the returned object is released. When the
    ///   communication manager stops, it pauses until the next start; advertise the object again then, because others
    ///   have removed it if its parent is the agent's identity.
    /// - Throws: `EncodingError` or ``PayloadError`` if the object can't be advertised;
    ///   ``CommunicationError/queueFull(publications:bytes:)``
    public func advertiseDiscoverableObject(
        object: CoatyObject,
        shouldSetParentObjectId: Bool = true
    ) throws -> Subscription {
        if shouldSetParentObjectId { object.parentObjectId = container.identity.objectId }
        let event = try AdvertiseEvent.with(object: object)
        let subscription = try discoverables.insert(event, communicationManager)
        try communicationManager.publishAdvertise(event)
        return subscription
    }

    /// Advertises an object again after its properties have changed. From now on, answers contain this version.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` if the object can't be advertised;
    ///   ``CommunicationError/queueFull(publications:bytes:)``
    public func readvertiseDiscoverableObject(object: CoatyObject) throws {
        let event = try AdvertiseEvent.with(object: object)
        try discoverables.update(event, objectId: object.objectId)
        try communicationManager.publishAdvertise(event)
    }

    /// Deadvertises an object, and stops answering Discover events for it.
    ///
    /// Not needed if the object lives as long as its agent and the agent's identity is its parent.
    ///
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func deadvertiseDiscoverableObject(
        object: CoatyObject,
        discoverableSubscription: Subscription
    ) throws {
        discoverableSubscription.cancel()
        try communicationManager.publishDeadvertise(.with(objectIds: object.objectId))
    }
}
