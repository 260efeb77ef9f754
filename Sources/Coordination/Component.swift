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

    /// Receives what a child of its coordinator reports; see ``AnyCoordinator/send(_:)``.
    ///
    /// Called on the sender's thread, at any time between the start and the end of the child, also during a transition. It must not
    /// block, and can call a coordinator only from a new `Task`.
    func received(_ message: any Sendable, from child: AnyCoordinator)

    /// Decides on a child that asks to be stopped; see ``AnyCoordinator/requestDismissal()``. Called as ``received(_:from:)`` is.
    ///
    /// - Returns: whether the coordinator stops the child now. If not, this component deals with it.
    func childRequestedDismissal(_ child: AnyCoordinator) -> Bool
}

extension Component {
    /// Does nothing: a component without a cheaper mode keeps running while its coordinator is paused.
    public func pause() async {}

    /// Does nothing.
    public func resume() async {}

    /// Ignores the message.
    public func received(_ message: any Sendable, from child: AnyCoordinator) {}

    /// Lets the coordinator stop the child.
    public func childRequestedDismissal(_ child: AnyCoordinator) -> Bool { true }
}
