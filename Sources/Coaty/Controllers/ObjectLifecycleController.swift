/// Keeps track of agents, or of other objects, as they come, change and go.
///
/// Agents advertise, answer for and deadvertise their identities by themselves. For other objects their agent does so with
/// ``advertiseDiscoverableObject(object:shouldSetParentObjectId:)`` and its siblings.
///
/// An object whose parent is the identity of its agent, or one of the agent's IO nodes, is shared: it goes with the agent, also
/// when the connection is lost, because the broker then deadvertises identity and IO nodes for the agent. After a reconnect the agent
/// advertises exactly these again: its identity, its IO nodes, and the latest version of each shared object that it has
/// not deadvertised. This holds for every object that is advertised with ``CommunicationManager/publishAdvertise(_:)``, but
/// log objects. Other objects were not withdrawn and are not advertised again.
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
    /// How many objects one observation keeps track of; those beyond are not tracked, which is logged.
    public nonisolated static let maximumObjects = 10_000
    /// How many bytes of objects one observation keeps; what is beyond is not tracked, which is logged.
    public nonisolated static let maximumBytes = 64 << 20

    private let discoverables = Discoverables()

    /// Tracks the objects of a core type.
    ///
    /// They are discovered now and after each reconnect. An object that was deadvertised while this agent was offline stays until it
    /// is deadvertised again. The stream ends when the communication manager stops; dropping it ends the tracking. It is
    /// for one reader.
    ///
    /// - Parameters:
    ///   - coreType: `Identity` for agents.
    ///   - objectFilter: which objects are tracked, all without; called on the binding's thread, must not block. An object
    ///     that passes no more is removed.
    /// - Throws: what ``DiscoverEvent/with(coreTypes:)`` throws.
    public func observeObjectLifecycleInfoByCoreType(
        coreType: CoreType,
        objectFilter: (@Sendable (CoatyObject) -> Bool)? = nil
    ) throws -> AsyncStream<ObjectLifecycleInfo> {
        try track(.advertise(withCoreType: coreType), .with(coreTypes: [coreType]), objectFilter)
    }

    /// Tracks the objects of an object type, as ``observeObjectLifecycleInfoByCoreType(coreType:objectFilter:)`` does those
    /// of a core type.
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

    /// Advertises an object, and answers those who discover it by its types or its object id.
    ///
    /// - Parameters:
    ///   - object: the object, as it is at this moment; see ``readvertiseDiscoverableObject(object:)``.
    ///   - shouldSetParentObjectId: whether the agent's identity becomes the object's parent, so that it goes with the
    ///     agent.
    /// - Returns: the observation of Discover events, to be kept: it ends when this is released, and when the communication
    ///   manager stops.
    /// - Throws: `EncodingError` or ``PayloadError`` where the object can't be advertised;
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

    /// Advertises an object again after its properties have changed. From now on this is what those who discover it get.
    ///
    /// - Throws: `EncodingError` or ``PayloadError`` where the object can't be advertised;
    ///   ``CommunicationError/queueFull(publications:bytes:)``
    public func readvertiseDiscoverableObject(object: CoatyObject) throws {
        let event = try AdvertiseEvent.with(object: object)
        try discoverables.update(event, objectId: object.objectId)
        try communicationManager.publishAdvertise(event)
    }

    /// Deadvertises an object, and ends answering for it.
    ///
    /// Not needed where the object lives as long as its agent, provided that the agent's identity is its parent.
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
