/// A controller that reports whether the agent is connected.
open class ConnectionStateController: Controller {
    /// Whether the communication manager is offline: the current value, then each change.
    ///
    /// A slow reader gets only the latest change. The stream continues when the communication manager is stopped and
    /// started again; it ends with the task that reads it.
    public var isOffline: some AsyncSequence<Bool, Never> & Sendable {
        communicationManager.getCommunicationState().map { $0 == .offline }
    }
}
