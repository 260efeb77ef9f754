/// A controller that keeps the latest values of the agent's IO actors and reports whether they are associated.
///
/// Values are kept from the first call for an actor. The latest value is kept across new associations and restarts of
/// the communication manager; to avoid this, use ``CommunicationManager/observeIoValue(ioActor:)``. The streams
/// continue across restarts too, and end when the container is shut down.
open class IoActorController: Controller {
    private struct Actor {
        let latest: LatestIoValue
        let state: IoPointState
    }

    /// The actors that calls have named, by their object ids.
    private var actors: [CoatyUUID: Actor] = [:]

    /// Returns the JSON values of an actor: the latest one, or nil if none was received yet, then each new value.
    ///
    /// The stream is bounded like an ``EventStream``. For an actor that uses raw values, the stream contains nil: see
    /// ``observeRawIoValue(actor:)``.
    public func observeIoValue(actor: IoActor) -> some AsyncSequence<AnyCodable?, Never> & Sendable {
        registered(actor).latest.stream().map { $0?.event.value }
    }

    /// Returns the values of an actor as bytes, even if they are JSON; otherwise like ``observeIoValue(actor:)``.
    public func observeRawIoValue(actor: IoActor) -> some AsyncSequence<[UInt8]?, Never> & Sendable {
        registered(actor).latest.stream().map { $0?.event.bytes }
    }

    /// Returns the latest JSON value of an actor; nil if none was received yet, or if the actor uses raw values.
    public func getIoValue(actor: IoActor) -> AnyCodable? { registered(actor).latest.received?.event.value }

    /// Returns the latest value of an actor as bytes; nil if none was received yet.
    public func getRawIoValue(actor: IoActor) -> [UInt8]? { registered(actor).latest.received?.event.bytes }

    /// Returns whether the actor is associated: the current state, then each change. A slow reader gets only the latest
    /// change.
    public func observeAssociation(actor: IoActor) -> AsyncStream<Bool> {
        registered(actor).state.isAssociated.stream()
    }

    /// Returns whether the actor is currently associated.
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
