/// What a ``Coordinator`` owns: one thing that can be started and stopped, such as a listener or a link to a broker.
///
/// The coordinator calls these methods one at a time and only in a legal order, so a component needs no state machine
/// of its own for them. A component bounds its own waits: while one of its methods runs, the whole tree waits for it.
///
/// From within these methods a component may
/// - start and stop children of its coordinator, which happens at once, as part of the running transition;
/// - ask its coordinator, or one above it, to stop, pause or resume: the call returns immediately and is carried out
///   after the running transition, because waiting for it there would never end.
///
/// It may not wait for a coordinator of another tree that in turn waits for this one.
public protocol Component: Sendable {
    /// Begins work; returns once the component serves.
    ///
    /// - Throws: Whatever prevents it. A component that throws has released what it took: `stop()` is not called.
    func start() async throws

    /// Ends all work and releases everything that `start()` took. Also called while paused.
    func stop() async

    /// Holds back work until `resume()`; what is already running may end.
    func pause() async

    /// Takes up work again after `pause()`.
    func resume() async
}

extension Component {
    /// Does nothing: a component without a cheaper mode keeps running while its coordinator is paused.
    public func pause() async {}

    /// Does nothing.
    public func resume() async {}
}
