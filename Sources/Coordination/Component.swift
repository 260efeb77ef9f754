/// A part of a program that a ``Coordinator`` starts and stops, such as a listener or a session with a broker.
///
/// The coordinator calls these methods one at a time and only in a legal order, so a component needs no state machine
/// for them. A component must limit its waits: while one of its methods runs, the whole tree waits.
///
/// From within these methods, a component may
/// - start and stop children of its coordinator, which happens immediately, as part of the running transition;
/// - ask its coordinator, or one above it, to stop, pause or resume: the call returns immediately and is performed
///   after the running transition, because waiting for it there would be a deadlock.
///
/// It must not wait for a coordinator of another tree that in turn waits for this one.
public protocol Component: Sendable {
    /// Starts work, and returns when the component serves.
    ///
    /// - Throws: the reason why it can't start. A component that throws has released its resources: `stop()` is not
    ///   called.
    func start() async throws

    /// Ends all work and releases all resources of `start()`. Also called while paused.
    func stop() async

    /// Suspends work until `resume()`; running work may complete.
    func pause() async

    /// Resumes work after `pause()`.
    func resume() async

    /// Receives a message from a child of its coordinator; see ``AnyCoordinator/send(_:)``.
    ///
    /// Called on the sender's thread, at any time between the start and the end of the child, even during a transition.
    /// It must not block, and can call a coordinator only from a new `Task`.
    func received(_ message: any Sendable, from child: AnyCoordinator)

    /// Decides on a child that requests to be stopped; see ``AnyCoordinator/requestDismissal()``. Called like
    /// ``received(_:from:)``.
    ///
    /// - Returns: whether the coordinator stops the child now. If not, this component handles the request.
    func childRequestedDismissal(_ child: AnyCoordinator) -> Bool
}

extension Component {
    /// Does nothing: a component without a cheaper mode keeps running while its coordinator is paused.
    public func pause() async {}

    /// Does nothing.
    public func resume() async {}

    /// Ignores the message.
    public func received(_ message: any Sendable, from child: AnyCoordinator) {}

    /// Allows the coordinator to stop the child.
    public func childRequestedDismissal(_ child: AnyCoordinator) -> Bool { true }
}
