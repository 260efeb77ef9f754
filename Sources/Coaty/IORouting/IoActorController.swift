/// Keeps the latest values that come for the agent's IO actors, and tells whether these are associated.
///
/// Values are kept from the first call for an actor on. The latest one stays over new associations, and when the
/// communication manager is stopped and started again; where that is not desired, use
/// ``CommunicationManager/observeIoValue(ioActor:)``. The streams go on likewise, and end when the container is shut down.
open class IoActorController: Controller {
    private struct Actor {
        let latest: LatestIoValue
        let state: IoPointState
    }

    /// The actors that were asked for, by their object ids.
    private var actors: [CoatyUUID: Actor] = [:]

    /// The JSON values of an actor: the latest one, or nil where none has come yet, then each one that comes.
    ///
    /// The stream keeps ``CommunicationManager/streamBuffer`` values for a reader that is behind; then the oldest are
    /// dropped. Of an actor that uses raw values it gives nil: see ``observeRawIoValue(actor:)``.
    public func observeIoValue(actor: IoActor) -> some AsyncSequence<AnyCodable?, Never> & Sendable {
        registered(actor).latest.stream().map { $0?.event.value }
    }

    /// The values of an actor as bytes, also where they are JSON; otherwise as ``observeIoValue(actor:)``.
    public func observeRawIoValue(actor: IoActor) -> some AsyncSequence<[UInt8]?, Never> & Sendable {
        registered(actor).latest.stream().map { $0?.event.bytes }
    }

    /// The latest JSON value of an actor; nil where none has come yet, and where the actor uses raw values.
    public func getIoValue(actor: IoActor) -> AnyCodable? { registered(actor).latest.received?.event.value }

    /// The latest value of an actor as bytes; nil where none has come yet.
    public func getRawIoValue(actor: IoActor) -> [UInt8]? { registered(actor).latest.received?.event.bytes }

    /// Whether the actor is associated: as it is now, then each change. Of changes that are not read in time the latest is
    /// kept.
    public func observeAssociation(actor: IoActor) -> AsyncStream<Bool> {
        registered(actor).state.isAssociated.stream()
    }

    /// Whether the actor is associated at this moment.
    public func isAssociated(actor: IoActor) -> Bool { registered(actor).state.isAssociated.value }

    /// Ends the streams.
    open override func onDispose() {
        super.onDispose()
        actors = [:]
    }

    private func registered(_ actor: IoActor) -> Actor {
        if let known = actors[actor.objectId] { return known }
        let new = Actor(
            latest: LatestIoValue(ioActor: actor, communicationManager: communicationManager),
            state: IoPointState(of: actor, communicationManager)
        )
        actors[actor.objectId] = new
        return new
    }
}
