/// Tells whether the agent is connected.
open class ConnectionStateController: Controller {
    /// Whether the communication manager is offline: as it is now, then each change.
    ///
    /// Of changes that are not read in time the latest is kept. The stream goes on when the communication manager is stopped
    /// and started again; it ends with the task that reads it.
    public var isOffline: some AsyncSequence<Bool, Never> & Sendable {
        communicationManager.getCommunicationState().map { $0 == .offline }
    }
}
